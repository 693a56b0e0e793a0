# `make deb`: a Debian package of what `make install` puts in place. Its dependencies are the
# libraries that the binary is linked with, found by dpkg-shlibdeps.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME paceline)
set(CPACK_PACKAGE_CONTACT "the authors of paceline <paceline@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "distributed trainer of neural networks and recommenders for CPU machines")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS python3-numpy) # of torch_weights.py
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
install(FILES deploy/paceline-serve.service DESTINATION lib/systemd/system COMPONENT systemd)
include(CPack)
