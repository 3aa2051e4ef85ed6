"""One plan in a process of its own, so that time and memory are those of this plan alone."""

from __future__ import annotations

import gc
import json
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

from bench.info.errors import BenchError
from bench.placement.instances import KINDS, Instance, invent
from bench.placement.methods import PLANNERS

ROOT = Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 100.0
"""A plan that takes longer, its input not counted, is given up."""
SHORT_SECONDS = 1.0
"""What takes less is planned once more: the first time also pays for what a process does once."""


def measure(method: str, kind: str, nodes: int, blocks: int) -> dict[str, float]:
    """Seconds of planning, and bytes resident at most, `input_bytes` of them before; BenchError says why not."""
    words = [method, kind, str(nodes), str(blocks), str(LIMIT_SECONDS)]
    argv = [sys.executable, "-m", "bench.placement.planning", *words]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == -signal.SIGALRM:
        raise BenchError(f"took more than {LIMIT_SECONDS:g} s")
    if done.returncode < 0:
        raise BenchError(f"was killed by {signal.Signals(-done.returncode).name}, as when memory is short")
    if done.returncode:
        raise BenchError(f"failed: {done.stderr.strip()[-500:]}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(method: str, kind: str, nodes: int, blocks: int, limit_seconds: float) -> None:
    """What the process does: make the input, plan, print; its own alarm ends it when planning takes too long."""
    instance = invent(KINDS[kind], nodes, blocks, seed=0)
    gc.collect()
    before = _peak_bytes()
    signal.setitimer(signal.ITIMER_REAL, limit_seconds)
    seconds = _seconds(method, instance)
    signal.setitimer(signal.ITIMER_REAL, 0)
    found = {"seconds": seconds, "peak_bytes": _peak_bytes(), "input_bytes": before}
    if seconds < SHORT_SECONDS:
        found["again_seconds"] = _seconds(method, instance)
    print(json.dumps(found))


def _seconds(method: str, instance: Instance) -> float:
    begun = time.perf_counter()
    plan = PLANNERS[method](instance.blocks, instance.capability, instance.terms)
    seconds = time.perf_counter() - begun
    if sum(plan.loads().values()) != len(instance.blocks):
        raise SystemExit(f"{method} planned {sum(plan.loads().values())} of {len(instance.blocks)} pictures")
    return seconds


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
