"""A shell as a reader of the pages has it: a home of its own, a folder to work in, and this checkout's `nodewise`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from infosvc.wire.service_options import TIMEOUT_VARIABLE
from tests.recipes.pages import ROOT

STRANGE = ("NODEWISE_", "HADOOP_")  # settings of whoever runs the tests
PATIENCE = {TIMEOUT_VARIABLE: "60"}
"""With a service that gets its turn late, as beside other tests."""


@dataclass
class Shell:
    """Commands run in `folder` with HOME=`home`, and `settings` in the environment.

    Whatever is in the folder `bin` below home goes before the programs of that name of this machine.
    """

    home: Path
    folder: Path
    settings: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.home / "bin").mkdir(parents=True, exist_ok=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, place in {".venv": Path(sys.prefix), "examples": ROOT / "examples"}.items():
            if not (self.folder / name).exists():
                (self.folder / name).symlink_to(place)

    def run(self, text: str, timeout: float = 300) -> str:
        """What the commands print; they must all go well."""
        done = subprocess.run(
            self._words(text), cwd=self.folder, env=self.environment(), capture_output=True, text=True, timeout=timeout
        )
        assert done.returncode == 0, f"{text}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def start(self, text: str) -> subprocess.Popen[str]:
        """Commands that go on; `stop` ends them."""
        return subprocess.Popen(
            self._words(text),
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def environment(self) -> dict[str, str]:
        """What the commands see."""
        own = {name: value for name, value in os.environ.items() if not name.startswith(STRANGE)}
        places = [str(self.home / "bin"), str(Path(sys.prefix) / "bin"), own["PATH"], "/usr/sbin"]
        told = {"HOME": str(self.home), "PATH": ":".join(places), "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        told |= {"XDG_CACHE_HOME": own.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")}  # others have filled it
        return own | told | PATIENCE | self.settings

    def program(self, name: str, text: str) -> None:
        """Put a shell script before the program of this name."""
        file = self.home / "bin" / name
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)

    @staticmethod
    def _words(text: str) -> list[str]:
        return ["bash", "-eo", "pipefail", "-c", text]


def stop(process: subprocess.Popen[str]) -> None:
    """End what `start` began, with all that it has started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
    process.wait(180)
    if process.stdout:
        process.stdout.close()


def changed(text: str, *pairs: tuple[str, str]) -> str:
    """A recipe with other names in it, each of which must be there."""
    for old, new in pairs:
        assert old in text, f"the recipe does not say {old!r} any more:\n{text}"
        text = text.replace(old, new)
    return text
