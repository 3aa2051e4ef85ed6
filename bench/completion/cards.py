"""The CPUs and the network cards of the lab's workers, as a shape has them, for as long as a bench runs."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

from bench.completion.shapes import Shape
from bench.completion.source import serve
from bench.info.errors import BenchError
from bench.lab import WORKERS
from bench.paper.stage import Stage
from bench.programs import output

DEVICE = "eth0"
LEAST_BURST, BURST_SECONDS = 64 * 1024, 0.01
"""As the lab has them: less would slow a fast card down."""


@contextmanager
def hold(made: Stage, shape: Shape) -> Iterator[str]:
    """Hold workers to a shape; yields the HOST:PORT of what their tasks read, which is empty if none reads.

    What they get is held at the other end of their cables, which are of this machine: the lab itself limits only what
    a card sends. What workers send, and their CPUs, the stage puts back as it ends.
    """
    with ExitStack() as stack:
        cables = {name: find_cable(made, name) for name in WORKERS}
        for cable in cables.values():
            with suppress(BenchError):  # there is none, unless a bench was killed
                _free(cable)
        for name, cpus in zip(WORKERS, shape.cpus, strict=True):
            made.limit(name, cpus)
        for name, mbit in zip(WORKERS, shape.cards, strict=False):
            made.run(name, "sudo", *_limit(DEVICE, mbit))
            output(_limit(cables[name], mbit), f"tc for {name}")
            stack.callback(partial(_free, cables[name]))
        yield stack.enter_context(serve(made.control.address)) if shape.cards else ""


def find_cable(made: Stage, name: str) -> str:
    """The network interface of this machine at which a worker's card ends."""
    index = int(made.run(name, "cat", f"/sys/class/net/{DEVICE}/iflink"))
    try:
        return socket.if_indextoname(index)
    except OSError:
        raise BenchError(f"this machine has no network interface {index}, at which {name} ends") from None


def _limit(interface: str, mbit: int) -> list[str]:
    burst = max(LEAST_BURST, round(mbit * 1e6 / 8 * BURST_SECONDS))
    tbf = ("tbf", "rate", f"{mbit}mbit", "burst", str(burst), "latency", "50ms")
    return ["tc", "qdisc", "replace", "dev", interface, "root", *tbf]


def _free(interface: str) -> None:
    output(["tc", "qdisc", "delete", "dev", interface, "root"], "tc")
