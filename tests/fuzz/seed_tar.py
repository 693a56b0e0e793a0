"""seed_tar.py DIR: small tar archives in the formats that occur."""
import io
import sys
import tarfile

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
NAMES = ["package/data/a", "b", "folder/" * 20 + "c", "n" * 90 + "/d"]

for label, form in FORMATS.items():
    with tarfile.open(f"{sys.argv[1]}/{label}.tar", "w", format=form) as tar:
        folder = tarfile.TarInfo("package")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for size, name in zip((0, 5, 512, 700), NAMES):
            member = tarfile.TarInfo(name)
            member.size = size
            tar.addfile(member, io.BytesIO(bytes(i % 251 for i in range(size))))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "b"
        tar.addfile(link)
