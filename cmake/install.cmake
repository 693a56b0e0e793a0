# What `make install` puts where. The man page and the completions are printed by the program
# itself, from the same option tables as --help; `installables` makes them.
include(GNUInstallDirs)
if(NOT TARGET paceline)
  return()
endif()
set(made ${CMAKE_BINARY_DIR}/installables)
file(MAKE_DIRECTORY ${made})

# installable(FILE DESTINATION ARGUMENT…): FILE is what `paceline ARGUMENT…` prints.
function(installable file destination)
  add_custom_command(OUTPUT ${made}/${file} DEPENDS paceline VERBATIM
    COMMAND $<TARGET_FILE:paceline> ${ARGN} > ${made}/${file}.part
    COMMAND ${CMAKE_COMMAND} -E rename ${made}/${file}.part ${made}/${file})
  set_property(GLOBAL APPEND PROPERTY INSTALLABLES ${made}/${file})
  install(FILES ${made}/${file} DESTINATION ${destination})
endfunction()

installable(paceline.1 ${CMAKE_INSTALL_MANDIR}/man1 help --man)
installable(paceline ${CMAKE_INSTALL_DATADIR}/bash-completion/completions completion bash)
installable(_paceline ${CMAKE_INSTALL_DATADIR}/zsh/site-functions completion zsh)
installable(paceline.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d completion fish)
get_property(files GLOBAL PROPERTY INSTALLABLES)
add_custom_target(installables DEPENDS ${files})
install(FILES tools/torch_weights.py tools/safetensors.py
  DESTINATION ${CMAKE_INSTALL_DATADIR}/paceline COMPONENT torch)
install(TARGETS paceline RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
include(cmake/package.cmake)
