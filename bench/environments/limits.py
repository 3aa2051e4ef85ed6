"""A network of its own for this process and all that it starts, in which senders can have the cards of machines.

A card is a part of loopback: what leaves through the ports of one sender gets no more than the card's bandwidth in all.
Whoever fetches has one connection at a time, so it gets no more than the card of one machine either.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench.info.errors import BenchError
from bench.programs import output
from bench.training.thin_link import CLONE_NEWNET

FRAME_BYTES = 1500
"""Of Ethernet, so that headers take the part of the bandwidth that they take on a cable."""
LEAST_BURST, BURST_SECONDS = 64 * 1024, 0.01
DEVICE = "lo"


def leave_network() -> None:
    """Be in a new network from now on, with loopback alone; BenchError for who may not."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        raise BenchError(f"no network can be made ({os.strerror(ctypes.get_errno())}): run this as root")
    output(["ip", "link", "set", DEVICE, "mtu", str(FRAME_BYTES), "up"], "ip")


@contextmanager
def limited(megabits: float, senders: Sequence[Sequence[int]]) -> Iterator[None]:
    """Let each sender, known by its ports, send so many megabits a second until the end of the block."""
    _tc("qdisc", "add", "root", "handle", "1:", "htb")
    try:
        for number, ports in enumerate(senders, 1):
            _add_card(number, megabits, ports)
        yield
    finally:
        _tc("qdisc", "delete", "root")


def _add_card(number: int, megabits: float, ports: Sequence[int]) -> None:
    burst = str(max(LEAST_BURST, round(megabits * 1e6 / 8 * BURST_SECONDS)))
    rate = ["rate", f"{megabits:g}mbit", "burst", burst, "cburst", burst, "quantum", str(LEAST_BURST)]
    _tc("class", "add", "parent", "1:", "classid", f"1:{number}", "htb", *rate)
    for port in ports:
        match = ["match", "ip", "sport", str(port), "0xffff"]
        _tc("filter", "add", "parent", "1:", "protocol", "ip", "u32", *match, "flowid", f"1:{number}")


def _tc(kind: str, verb: str, *words: str) -> None:
    output(["tc", kind, verb, "dev", DEVICE, *words], f"tc {kind}")
