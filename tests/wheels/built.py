"""The two wheels, made of a copy of this checkout, and environments with nothing of the checkout on their path."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.recipes.checkout import Checkout
from tests.recipes.pages import ROOT

MADE = ("yarn-plugin/target", "infosvc/web/vendor")
"""What scripts/setup makes and a wheel has in it."""
UV = Path(sys.executable).with_name("uv")
STRANGE = ("NODEWISE_", "HADOOP_", "PYTHON")


@dataclass(frozen=True)
class Wheels:
    """`main` is nodewise, `client` is what programs import."""

    main: Path
    client: Path


def build(folder: Path) -> Wheels:
    """Build both, as scripts/wheels does once everything is set up."""
    copy = prepare(folder / "checkout")
    run([sys.executable, "-m", "wheels.manual", "build/share"], cwd=copy)
    return pack(copy, folder / "dist")


def prepare(folder: Path) -> Path:
    """A copy of the checkout."""
    Checkout(folder)
    for name in MADE:
        (folder / name).symlink_to(ROOT / name)
    return folder


def pack(copy: Path, target: Path) -> Wheels:
    """The wheels of a copy in which everything is made."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    run([*pip, "--no-deps", "--no-build-isolation", "-w", target, ".", "wheels/client"], cwd=copy)
    (main,), (client,) = target.glob("nodewise-*.whl"), target.glob("nodewise_client-*.whl")
    return Wheels(main, client)


@dataclass(frozen=True)
class Environment:
    """A virtual environment; what runs there works beside it, and sees no settings of whoever runs the tests."""

    folder: Path

    @property
    def packages(self) -> Path:
        """Its site-packages."""
        return Path(sysconfig.get_path("purelib", vars={"base": str(self.folder)}))

    def install(self, *wheels: Path) -> None:
        """Without what they depend on."""
        self._uv("install", "--offline", "--no-deps", "--reinstall", *wheels)

    def uninstall(self, name: str) -> None:
        self._uv("uninstall", name)

    def python(self, program: str, *words: str) -> str:
        """What a program prints, which must go well."""
        return run([self.folder / "bin" / "python", "-c", program, *words], cwd=self.work(), env=self.variables())

    def nodewise(self, *words: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
        """One run of the command."""
        argv = [self.folder / "bin" / "nodewise", *words]
        variables = self.variables() | settings
        return subprocess.run(argv, cwd=self.work(), env=variables, capture_output=True, text=True, timeout=600)

    def variables(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith(STRANGE)}
        return own | {"HOME": str(self.work()), "NODEWISE_HOME": str(self.work() / "home")}

    def work(self) -> Path:
        """The folder beside it."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        return self.folder.parent

    def _uv(self, what: str, *words: str | Path) -> None:
        run([UV, "pip", what, "--quiet", "--python", self.folder / "bin" / "python", *words])


def environment(folder: Path, with_libraries: bool) -> Environment:
    """A new one. Libraries are those that the tests have: all that nodewise depends on, but nothing of the checkout.

    A line of a .pth file leads there, and .pth files there, such as the one that leads to a checkout, are not read.
    """
    run([UV, "venv", "--quiet", "--no-project", "--python", sys.executable, folder])
    made = Environment(folder)
    if with_libraries:
        (made.packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return made


def run(argv: Sequence[str | Path], cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{argv}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout
