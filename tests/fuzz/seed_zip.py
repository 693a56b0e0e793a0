"""seed_zip.py DIR: small zip archives: stored, deflated, with a comment, empty."""
import sys
import zipfile

for label, method in {"stored": zipfile.ZIP_STORED, "deflated": zipfile.ZIP_DEFLATED}.items():
    with zipfile.ZipFile(f"{sys.argv[1]}/{label}.zip", "w", method) as archive:
        archive.writestr("set/", b"")
        archive.writestr("set/a.csv", b"user,item,rating\n" * 30)
        archive.writestr("set/b", bytes(i * i % 256 for i in range(700)))
with zipfile.ZipFile(f"{sys.argv[1]}/comment.zip", "w") as archive:
    archive.writestr("a", b"abc")
    archive.comment = b"a comment"
with zipfile.ZipFile(f"{sys.argv[1]}/empty.zip", "w"):
    pass
