"""The memory of programs on one node: what they hold, with pages that several of them hold counted once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from bench.environments.run import Phases, Running, await_ready, begin, finish
from bench.environments.scene import Scene
from bench.environments.ways import Way

_SHARE = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)


def measure(scene: Scene, way: Way) -> Phases:
    """Bytes of one program after its first step, and how many more there are with a second one beside it."""
    node = scene.nodes[0]
    first = _hold(scene, way, node)
    alone = _sum_shares([first])
    second = _hold(scene, way, node)
    both = _sum_shares([first, second])
    for one in (first, second):
        (one.folder / "go").touch()
        finish(scene, one)
    return {"one": alone, "one_more": both - alone}


def _hold(scene: Scene, way: Way, node: str) -> Running:
    running = begin(scene, way, node, "hold")
    await_ready(running)
    return running


def _sum_shares(programs: list[Running]) -> float:
    """Proportional shares of all processes of these programs, what mounts their packages too."""
    found = {one.pid for program in programs for one in _processes(program)}
    return float(sum(map(_share_bytes, found)))


def _processes(running: Running) -> Iterator[psutil.Process]:
    """Those that name the program's folder, which each way has in its line, with all that they have started."""
    for one in psutil.process_iter():
        with suppress(psutil.Error):
            if any(str(running.folder) in word for word in one.cmdline()):
                yield one
                yield from one.children(recursive=True)


def _share_bytes(pid: int) -> int:
    with suppress(OSError):
        match = _SHARE.search(Path(f"/proc/{pid}/smaps_rollup").read_text())
        return 1024 * int(match[1]) if match else 0
    return 0
