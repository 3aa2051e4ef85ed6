"""Runs the real collectors as a slot does, on fixtures and on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# Shells and awks of the distributions: dash and mawk (Debian), bash and gawk (Red Hat), busybox (Alpine).
TOOLS = {"dash": ("dash", "mawk"), "bash": ("bash", "gawk"), "busybox": ("busybox sh", "busybox awk")}


@dataclass(frozen=True)
class Run:
    """What one run left."""

    stdout: str
    stderr: str
    status: int

    @property
    def values(self) -> dict[str, str]:
        """Name -> value of a collector with emits."""
        named = [line.partition(" ")[::2] for line in self.stdout.splitlines()]
        assert len(dict(named)) == len(named), "a name was printed twice"
        return dict(named)

    @property
    def is_no_data(self) -> bool:
        """Whether nothing was found to measure, and the reason told in one line."""
        return (self.stdout, self.status, self.stderr.count("\n")) == ("", 3, 1)


@pytest.fixture
def execute() -> Callable[..., Run]:
    """execute(COMMAND, KEY=VALUE): one run in a bare environment."""

    def run(command: list[str], descriptors: tuple[int, ...] = (), **environment: str) -> Run:
        surroundings = {"PATH": os.environ["PATH"], "LANG": "C", "NVIDIA_SMI": "/no/nvidia-smi"} | environment
        ran = subprocess.run(
            command,
            env=surroundings,
            pass_fds=descriptors,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Run(ran.stdout, ran.stderr, ran.returncode)

    return run


@pytest.fixture
def collect(tmp_path: Path, execute: Callable[..., Run]) -> Callable[..., Run]:
    """collect(NAME, *arguments, proc=FIXTURE or folder, KEY=VALUE): one run of a collector, with its folder kept."""

    def run(name: str, *arguments: str, proc: str | Path | None = None, shell: str = "sh", **environment: str) -> Run:
        state = tmp_path / "state" / name
        state.mkdir(parents=True, exist_ok=True)
        if proc is not None:
            fixture = ROOT / "tests" / "fixtures" / f"proc_{proc}"
            environment["PROC_ROOT"] = str(fixture if isinstance(proc, str) else proc)
        script = ROOT / "collectors" / "scripts" / f"{name}.sh"
        return execute([*shell.split(), str(script), *arguments], STATE_DIR=str(state), **environment)

    return run


@pytest.fixture(params=TOOLS)
def tools(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """A shell, and a PATH on which awk is the one that comes with it; skipped where they are not installed."""
    shell, awk = TOOLS[request.param]
    if not all(shutil.which(command.split()[0]) for command in (shell, awk)):
        pytest.skip(f"{shell} or {awk} is not installed")
    program = tmp_path / "bin" / "awk"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {awk} "$@"\n')
    program.chmod(0o755)
    return {"shell": shell, "PATH": f"{program.parent}:{os.environ['PATH']}"}


@pytest.fixture
def tree() -> Callable[[Path, dict[str, str]], Path]:
    """tree(ROOT, {path: text}): a folder with these files."""

    def write(root: Path, files: dict[str, str]) -> Path:
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return root

    return write
