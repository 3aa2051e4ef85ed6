"""Packs the broker of boxes into one file that runs on a bare Python: python -m boxes.package broker.pyz

Or the mounter, by the file's name: mounts.pyz.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

_PACKED = ("broker", "mounts")
_MAIN = "import sys\n\nfrom boxes.{}.__main__ import main\n\nsys.exit(main())\n"
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)
"""The oldest date that a zip can hold: equal sources make equal bytes."""


def pack(target: Path) -> None:
    """Write a zipapp; the same sources make the same bytes."""
    what = target.stem
    here = Path(__file__).parent
    contents = {f"boxes/{what}/{file.name}": file.read_text() for file in sorted((here / what).glob("*.py"))}
    contents |= {"__main__.py": _MAIN.format(what), "boxes/__init__.py": ""}
    with zipfile.ZipFile(target, "w") as archive:
        for name, text in sorted(contents.items()):
            archive.writestr(zipfile.ZipInfo(name, _ZIP_TIME), text)


if __name__ == "__main__":
    if len(sys.argv) != 2 or Path(sys.argv[1]).stem not in _PACKED:
        sys.exit(__doc__)
    pack(Path(sys.argv[1]))
