"""Other Debians, each as a root file system, and programs that run there with nothing of this machine but its kernel.

What is fetched for them is kept in a folder of this checkout, so that they are made once.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.recipes.pages import ROOT

KEPT = ROOT / ".machines_cache"
HOME, FETCHED = "/root", "/var/tmp/pip"
PACKAGES = ("ca-certificates", "iproute2", "libgomp1", "libquadmath0", "openssh-server", "procps", "python3-venv")
"""The service and the commands need python3-venv, MXNet libgomp1 and libquadmath0, a cluster's nodes the rest."""
OURS = ("/etc/hosts", "/etc/pip.conf", "/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt")
"""How this machine reaches its package index."""
_MAKING_SECONDS = 3000


@dataclass(frozen=True)
class Machine:
    """A Debian with the Python and the Java that nodewise has there.

    `is_brought` says that this is a Python of ours; `mxnet` is that of MXNet's workers, empty if none are tried.
    """

    release: str
    python: str
    java: int
    mxnet: str = ""
    is_brought: bool = False

    @property
    def name(self) -> str:
        return f"{self.release}-python{self.python}"


BOOKWORM = Machine("bookworm", "3.11", 17, mxnet="/usr/bin/python3.11")
MACHINES = (
    BOOKWORM,
    Machine("bookworm", "3.12", 17, is_brought=True),  # which no release of Debian has
    Machine("trixie", "3.13", 21, mxnet="/opt/python3.11/bin/python3.11"),  # where that of bookworm is brought along
)


def make_root(machine: Machine) -> Path:
    """Its root file system."""
    packages = [*PACKAGES, f"openjdk-{machine.java}-jre-headless"]
    made = KEPT / f"{machine.release}-{hashlib.sha256(' '.join(packages).encode()).hexdigest()[:8]}"
    if made.exists():
        return made
    draft = made.with_name(f"{made.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    KEPT.mkdir(exist_ok=True)
    small = ["--variant=minbase", "--aptopt=Acquire::Languages none", "--dpkgopt=path-exclude=/usr/share/doc/*"]
    hook = f'--customize-hook=cd "$1" && touch {" ".join(file.lstrip("/") for file in OURS)}'  # to be covered by ours
    argv = ["mmdebstrap", "--quiet", "--mode=root", *small, f"--include={','.join(packages)}", hook]
    log = made.with_name(f"{made.name}.log")
    with log.open("w") as said:
        done = subprocess.run(
            [*argv, machine.release, draft, _mirror()], stdout=said, stderr=said, check=False, timeout=_MAKING_SECONDS
        )
    assert done.returncode == 0, log.read_text()[-3000:]
    draft.rename(made)
    return made


def _mirror() -> str:
    """Where apt of this machine has Debian from."""
    argv = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Label: Debian"]
    found = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()
    assert found, "apt knows no mirror of Debian: run apt-get update"
    return found[0]


def find_python(version: str) -> Path | None:
    """The folder of a Python of this machine that is a whole, such as one of pyenv or uv."""
    ask = "import sys; print(*sys.version_info[:2], sep='.'); print(sys.base_prefix)"
    program = shutil.which(f"python{version}")
    if program is None:
        return None
    environment = {**os.environ, "PYENV_VERSION": version}
    done = subprocess.run([program, "-Ic", ask], capture_output=True, text=True, env=environment, check=False)
    found, *folders = done.stdout.splitlines() or [""]
    return Path(folders[0]) if found == version and folders != ["/usr"] else None


@dataclass(frozen=True)
class Inside:
    """A machine that runs: the process that all of it is below, and what it tells the programs."""

    process: int
    variables: Mapping[str, str]

    def run(self, text: str, timeout: float = 600) -> str:
        """What lines for a shell print, which must all go well."""
        done = subprocess.run(self._words(text), capture_output=True, text=True, timeout=timeout, check=False)
        assert done.returncode == 0, f"{text}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
        return done.stdout

    def _words(self, text: str) -> list[str]:
        words = ["nsenter", "--target", str(self.process), "--mount", "--pid", "--net", "--root"]
        told = [f"{name}={value}" for name, value in self.variables.items()]
        return [*words, "env", "-i", f"--chdir={HOME}", *told, "bash", "-euo", "pipefail", "-c", text]


@contextmanager
def enter(root: Path, home: Path, brought: Mapping[Path, str], packages: Path | None = None) -> Iterator[Inside]:
    """A running machine, with `home` as the home of its only user, root, and what is brought from here in other places.

    With a folder for what pip fetches, it reaches the package index, without one nobody else at all.
    """
    binds = [*_binds({home: HOME}), *(_binds({packages: FETCHED}) if packages else ["--unshare-net"])]
    missing = [Path(place) for place in brought.values() if not (root / place.lstrip("/")).exists()]
    empty = {f"/{place.parts[1]}" for place in missing} | {"/home", "/opt", "/run", "/tmp", "/var/tmp"}
    fresh = [word for place in sorted(empty) for word in ("--tmpfs", place)]
    ours = [word for file in OURS if Path(file).exists() for word in ("--ro-bind", str(Path(file).resolve()), file)]
    given, told = os.pipe()
    argv = ["bwrap", "--die-with-parent", "--unshare-pid", "--unshare-uts", "--cap-add", "ALL", "--info-fd", str(told)]
    argv += ["--ro-bind", str(root), "/", "--dev", "/dev", "--proc", "/proc", *fresh, *ours]
    argv += [*binds, *_binds(brought, "--ro-bind"), "--", "sh", "-c", "echo ready; exec sleep infinity"]
    process = subprocess.Popen(argv, pass_fds=[told], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    os.close(told)
    with process, os.fdopen(given) as info:
        try:
            assert process.stdout and process.stdout.readline() == "ready\n", "bwrap made no machine"
            yield Inside(json.load(info)["child-pid"], _variables())
        finally:
            process.kill()


def _binds(places: Mapping[Path, str], how: str = "--bind") -> list[str]:
    return [word for ours, theirs in places.items() for word in (how, str(ours), theirs)]


def _variables() -> dict[str, str]:
    """Of ours only how the package index is reached."""
    index = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    index.pop("PIP_FIND_LINKS", None)
    path = f"{HOME}/nodewise/bin:/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin"
    return index | {"PIP_CACHE_DIR": FETCHED, "HOME": HOME, "USER": "root", "LANG": "C.UTF-8", "PATH": path}
