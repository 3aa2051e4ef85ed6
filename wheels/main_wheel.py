"""How setuptools makes the wheel of nodewise: a folder of its own in site-packages, which a .pth file names to Python.

It holds our rooms as a checkout does, with the files of other folders that they need, so no name of ours is beside the
packages of others, and what runs in another Python can be given our rooms alone.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools.command.build_py import build_py
from setuptools.errors import SetupError

FOLDER = "nodewise_rooms"
"""hadoop/installation.py knows it by this name."""
BESIDE = (
    "hadoop/pom.xml",
    "requirements/worker.txt",
    "requirements/worker-onnx.txt",
    "requirements/hadoop.sha256",
    "ansible/roles/hadoop/templates/**/*.j2",
    "yarn-plugin/target/nodewise-yarn-*.jar",
    "yarn-plugin/target/without-libhadoop.jar",
    "yarn-plugin/attributes/*.py",
    "boxes/systemd/*",
)
"""Files that our rooms need, of folders that setuptools does not bring."""
SHARED = "build/share"
"""Where `python -m wheels.manual` puts manual pages and what shells complete words by."""
NEEDED = ("infosvc/web/vendor/uPlot.esm.js", "yarn-plugin/target/nodewise-yarn-*.jar", f"{SHARED}/man/man1/nodewise.1")
"""What has to be made before; without it half a wheel would be built."""
DOCUMENTS = ("README.md", "CHANGELOG.md", "docs/*.md")


class BuildPy(build_py):  # type: ignore[misc] # setuptools has no types here
    """Builds the packages, then puts them and what is beside them into the one folder."""

    def run(self) -> None:
        """As setuptools does it; a checkout that is installed as itself stays as it is."""
        if self.editable_mode:
            super().run()
            return
        refuse_half()
        built = Path(self.build_lib)
        shutil.rmtree(built, ignore_errors=True)
        super().run()
        gather(built)
        self.distribution.data_files = shared_files()


def refuse_half() -> None:
    """SetupError where something is missing that is made before the wheel."""
    if missing := [pattern for pattern in NEEDED if not any(Path().glob(pattern))]:
        raise SetupError(f"{', '.join(missing)} is missing: scripts/wheels makes it, and the wheels of it")


def gather(built: Path) -> None:
    """Move all that setuptools has built into one folder, and add the rest."""
    packages = sorted(built.iterdir())
    rooms = built / FOLDER
    rooms.mkdir()
    for package in packages:
        package.rename(rooms / package.name)
    for file in (file for pattern in BESIDE for file in sorted(Path().glob(pattern))):
        target = rooms / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
    (built / f"{FOLDER}.pth").write_text(f"{FOLDER}\n", encoding="ascii")


def shared_files() -> list[tuple[str, list[str]]]:
    """The files below PREFIX/share, by their folders: manual pages, completion, and the pages of docs/."""
    files = [file for file in sorted(Path(SHARED).rglob("*")) if file.is_file()]
    found = [(f"share/{file.parent.relative_to(SHARED)}", [str(file)]) for file in files]
    pages = [file for pattern in DOCUMENTS for file in sorted(Path().glob(pattern))]
    return found + [(f"share/doc/nodewise/{file.parent}".removesuffix("/."), [str(file)]) for file in pages]
