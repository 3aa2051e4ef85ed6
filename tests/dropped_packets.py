"""Packets that the kernel drops, for tests of what is noticed then; by nft, which only root may."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator

import pytest

TABLE = f"nodewise_test_{os.getpid()}"


def dropping() -> Iterator[Callable[..., None]]:
    """For a fixture: drop("input", "tcp dport 80") has a hook of the kernel drop such packets until the test ends."""
    if os.geteuid() != 0 or shutil.which("nft") is None:
        pytest.skip("only root can have the kernel drop packets, and by nft")

    def drop(hook: str, *what: str) -> None:
        lines = [f"type filter hook {hook} priority 0; policy accept;", *(f"{one} drop" for one in what)]
        chain = "\n".join(lines)
        _nft(f"table inet {TABLE} {{\nchain some {{\n{chain}\n}}\n}}")

    yield drop
    _nft(f"table inet {TABLE}\ndelete table inet {TABLE}")


def heal() -> None:
    """Let everything through again."""
    _nft(f"flush table inet {TABLE}")


def _nft(script: str) -> None:
    subprocess.run(["nft", "-f", "-"], input=script, text=True, check=True)
