"""Packs the broker of boxes into one file that runs on a bare Python: python -m boxes.package broker.pyz

Or the mounter, by the file's name: mounts.pyz.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

_FOLDERS = {"broker": ("broker", "cdi"), "mounts": ("mounts",)}
"""The first has the program."""
_MAIN = "import sys\n\nfrom boxes.{}.__main__ import main\n\nsys.exit(main())\n"
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)
"""The oldest date that a zip can hold: equal sources make equal bytes."""


def pack(target: Path) -> None:
    """Write a zipapp; the same sources make the same bytes."""
    here, folders = Path(__file__).parent, _FOLDERS[target.stem]
    files = [file for folder in folders for file in sorted((here / folder).glob("*.py"))]
    contents = {f"boxes/{file.relative_to(here)}": file.read_text() for file in files}
    contents |= {"__main__.py": _MAIN.format(folders[0]), "boxes/__init__.py": ""}
    with zipfile.ZipFile(target, "w") as archive:
        for name, text in sorted(contents.items()):
            archive.writestr(zipfile.ZipInfo(name, _ZIP_TIME), text)


if __name__ == "__main__":
    if len(sys.argv) != 2 or Path(sys.argv[1]).stem not in _FOLDERS:
        sys.exit(__doc__)
    pack(Path(sys.argv[1]))
