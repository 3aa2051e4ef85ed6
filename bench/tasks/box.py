"""Steps per second of the same program in boxes of each kind, in turns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import boxes
from bench.docker_here import DockerHere
from bench.info.errors import BenchError
from bench.tasks.scene import MEMORY_MB
from boxes.box import Image, Limits, Program

PATIENCE_SECONDS = 300.0
PROGRAM = """
import sys, time
seconds, steps, total = float(sys.argv[1]), 0, 0.0
end = time.monotonic() + seconds
while not steps or time.monotonic() < end:
    for number in range(2000):
        total += number * 0.5
    steps += 1
print(steps / seconds)
"""


def measure(docker: DockerHere, seconds: float) -> Mapping[str, float]:
    """Each kind for so long, with one core."""
    with TemporaryDirectory(dir=docker.work) as folder:
        return {f"steps_{kind}": _run(docker, kind, seconds, Path(folder)) for kind in ("process", "docker")}


def _run(docker: DockerHere, kind: str, seconds: float, folder: Path) -> float:
    printed: list[bytes] = []
    box = boxes.create(kind)
    argv = ["/usr/bin/python3", "-c", PROGRAM, str(seconds)]
    image = None if box.shows_machine else Image(docker.image, docker.fetch)
    box.start(Program(argv, {}, folder, Limits(MEMORY_MB), image), lambda _stream, content: printed.append(content))
    ended = box.wait(seconds + PATIENCE_SECONDS)
    if ended is None or ended.code:
        raise BenchError(f"a program in a box of kind {kind} {ended.text if ended else 'does not end'}")
    return float(b"".join(printed))
