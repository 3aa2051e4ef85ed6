"""How nodewise came to this machine: where its parts are for that reason, and what brings one that is missing."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The folder with our rooms, in a checkout and in a wheel."""
WHEEL_FOLDER = "nodewise_rooms"
"""What a wheel calls it, in site-packages: only the files of a wheel are in a folder of this name."""


class Kind(StrEnum):
    """How this nodewise was installed."""

    CHECKOUT = "checkout"
    WHEEL = "wheel"
    PLAYBOOK = "playbook"


class Part(StrEnum):
    """What nodewise needs beside its own code, by the name that `nodewise setup` has for it."""

    WORKER = "worker"
    TORCH = "worker --torch"
    HADOOP = "hadoop"
    PLUGIN = "plugin"


_IN_CHECKOUT = {Part.TORCH: "run scripts/setup --torch"}
_IN_WHEEL = {Part.PLUGIN: "install nodewise again, whose wheel has it"}
_BY_PLAYBOOK = {Part.TORCH: "set jobs_torch in the inventory, and run the playbook site.yml again"}


def kind_of(root: Path) -> Kind:
    """How the nodewise came here whose rooms are in this folder."""
    if (root / "scripts" / "setup").is_file():
        return Kind.CHECKOUT
    return Kind.WHEEL if root.name == WHEEL_FOLDER else Kind.PLAYBOOK


def remedy(part: Part, root: Path = ROOT) -> str:
    """What to do where a part is missing, as the words after `:` of a message."""
    kind = kind_of(root)
    if kind is Kind.CHECKOUT:
        return _IN_CHECKOUT.get(part, "run scripts/setup")
    if kind is Kind.WHEEL:
        return _IN_WHEEL.get(part, f"run `nodewise setup {part}`")
    return _BY_PLAYBOOK.get(part, "run the playbook site.yml again")


def tool_remedy(package: str, root: Path = ROOT) -> str:
    """What to do where a program of a Debian package is missing."""
    return "run scripts/setup" if kind_of(root) is Kind.CHECKOUT else f"install it with `apt-get install {package}`"


def unpacked_remedy(packages: str, root: Path = ROOT) -> str:
    """What to do where programs of Debian packages are missing that a checkout unpacks for itself."""
    install = f"`apt-get install {packages}`"
    return f"run scripts/setup --dev, or {install}" if kind_of(root) is Kind.CHECKOUT else f"install them: {install}"


def worker_environment(root: Path = ROOT) -> Path:
    """The virtual environment of the workers, whether it is there or not."""
    return _beside(root) / "worker" if kind_of(root) is Kind.WHEEL else root / ".venv-worker"


def hadoop_folder(root: Path = ROOT) -> Path:
    """The folder of what is kept of Hadoop; the jars are in its folder `lib`."""
    return _beside(root) / "hadoop" if kind_of(root) is Kind.WHEEL else root / "hadoop" / "target"


def _beside(root: Path) -> Path:
    """Where `nodewise setup` puts parts: in the environment that has the wheel, PREFIX/lib/pythonX.Y/site-packages."""
    return root.parents[3] / "share" / "nodewise"
