"""Makes the virtual environment of the workers, in the versions of a lock; a stamp, written last, says of which."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from jobs.errors import JobError

PYTHONS = ((3, 11), (3, 12), (3, 13))
"""The versions that ONNX Runtime works on. On the first MXNet does, too: its NumPy, 1.23, exists for no later one."""
ONNX = ("onnxruntime", "cv2", "pyarrow", "hdfs_native")
ENGINES = ("mxnet", *ONNX)
"""What a worker imports, which proves that the libraries of this machine are there, too."""
_CANDIDATES = ("python3.11", "python3", "/usr/bin/python3.11")
_CANDIDATES_FOR_ONNX = ("python3", "/usr/bin/python3", "python3.13", "python3.12", "python3.11")
_DEBIAN = Path("/usr/lib/python3/dist-packages")
_TORCH = ("torch", "torchgen", "functorch", "typing_extensions.py")
"""Of Debian's packages only these, as the environment has a NumPy of its own."""
_ASK = "import sys; print(*sys.version_info[:2])"
_TOLD = 1500
"""Characters from the end of what pip has said."""


def find(program: Path | None, only_onnx: bool = False) -> Path:
    """The Python to make it with: `program`, or the first that is here; JobError when it is of another version."""
    versions = PYTHONS if only_onnx else PYTHONS[:1]
    first, last = (".".join(map(str, version)) for version in (versions[0], versions[-1]))
    wanted = f"Python {first} to {last}" if only_onnx else f"Python {first}, which MXNet needs"
    mend = f"install one (`apt-get install python{last}`, `uv python install {last}`), or name it with --python"
    if not only_onnx:
        mend += ", or leave MXNet out with --onnx"
    if program is not None:
        if not _is_one_of(versions, str(program)):
            raise JobError(f"{program} is not a {wanted}", remedy=mend)
        return program
    for candidate in _CANDIDATES_FOR_ONNX if only_onnx else _CANDIDATES:
        if (path := shutil.which(candidate)) and _is_one_of(versions, path):
            return Path(path)
    raise JobError(f"this machine has no {wanted}", remedy=mend)


def make(folder: Path, python: Path, lock: Path, modules: Sequence[str]) -> None:
    """Install the lock into a new environment, and import some modules there; JobError when that fails."""
    refusal = f"{folder} cannot be made"
    _call([python, "-m", "venv", "--clear", "--without-pip", folder], refusal)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    there: list[str | Path] = ["--python", folder / "bin" / "python"]
    _call([*pip, *there, "install", "--quiet", "--require-hashes", "-r", lock], refusal)
    if said := _failure(folder, modules):
        mend = "install the library that is missing, for MXNet's `apt-get install libgomp1 libquadmath0`"
        raise JobError(f"the engines do not start ({said})", remedy=mend)
    (folder / "stamp").write_text(_stamp(lock), encoding="ascii")


def is_made_of(folder: Path, lock: Path) -> bool:
    """Whether the environment is whole, and of this very lock."""
    stamp = folder / "stamp"
    return stamp.is_file() and stamp.read_text(encoding="ascii") == _stamp(lock)


def link_torch(folder: Path) -> None:
    """Let the environment see Debian's PyTorch; JobError when that is not here, or made for another Python."""
    if not (_DEBIAN / "torch").exists():
        raise JobError("Debian's PyTorch is not installed", remedy="install it with `apt-get install python3-torch`")
    links = folder / "debian"
    links.mkdir(exist_ok=True)
    for name in _TORCH:
        (links / name).unlink(missing_ok=True)
        (links / name).symlink_to(_DEBIAN / name)
    (packages,) = folder.glob("lib/python3.*/site-packages")
    path = packages / "debian.pth"
    path.write_text("../../../debian\n", encoding="ascii")
    if said := _failure(folder, _TORCH[:1]):
        path.unlink()
        mend = "set up --torch on a machine whose own Python is the version of the workers, as Debian 12's is"
        raise JobError(f"Debian's PyTorch does not start in {folder} ({said})", remedy=mend)


def _failure(folder: Path, modules: Sequence[str]) -> str:
    """Why some modules cannot be imported in an environment; empty if they can."""
    argv: list[str | Path] = [folder / "bin" / "python", "-c", f"import {', '.join(modules)}"]
    ran = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    return (ran.stderr.strip().splitlines() or ["it said nothing"])[-1] if ran.returncode else ""


def _is_one_of(versions: Sequence[tuple[int, int]], program: str) -> bool:
    try:
        said = subprocess.run([program, "-c", _ASK], capture_output=True, text=True, check=False).stdout
    except OSError:
        return False
    return said.split() in [[str(number) for number in version] for version in versions]


def _call(argv: Sequence[str | Path], refusal: str) -> None:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    except OSError as error:
        raise JobError(f"{refusal}: {argv[0]} cannot be started ({error.strerror})") from error
    if done.returncode:
        raise JobError(refusal, remedy=" ".join((done.stdout + done.stderr)[-_TOLD:].split()))


def _stamp(lock: Path) -> str:
    return hashlib.sha256(lock.read_bytes()).hexdigest()
