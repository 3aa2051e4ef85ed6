"""`python -m bench.training.thin_link MBIT_PER_SECOND ROUND_TRIP_MILLISECONDS FILE`: a thin link of two namespaces.

This process holds two network namespaces, and carries packets from one to the other as a slow link does: each packet
waits until those before it are through, and then for half of the round trip. Namespaces have no names, so nothing is
left of them once this process and the programs inside have ended. It ends when its parent does.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import json
import os
import select
import struct
import subprocess
import sys
import time
from pathlib import Path

HOSTS = ("10.9.0.1", "10.9.0.2")
INTERFACE = "tun0"
CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
MOST_BYTES = 2048
"""Of a packet: the interfaces carry 1400."""
LOOK_SECONDS = 0.2


class Link:
    """When packets are through: `rate` in bytes a second, `delay` in seconds; each direction is a link of its own."""

    def __init__(self, rate: float, delay: float) -> None:
        self._rate = rate
        self._delay = delay
        self._free = [0.0, 0.0]
        self._due: list[tuple[float, int, int, bytes]] = []
        self._count = 0

    def send(self, side: int, packet: bytes, now: float) -> None:
        """From this side to the other one."""
        self._free[side] = max(self._free[side], now) + len(packet) / self._rate
        self._count += 1
        heapq.heappush(self._due, (self._free[side] + self._delay, self._count, 1 - side, packet))

    def take(self, now: float) -> tuple[int, bytes] | None:
        """The side that the next packet has come to, and the packet; None when none has."""
        if not self._due or self._due[0][0] > now:
            return None
        _, _, side, packet = heapq.heappop(self._due)
        return side, packet

    def wait(self, now: float) -> float:
        """Seconds until the next packet comes, at most those after which to look whether the parent lives."""
        return min(LOOK_SECONDS, max(0.0, self._due[0][0] - now)) if self._due else LOOK_SECONDS


def make_side(host: str) -> tuple[int, int]:
    """A new namespace, in which this process is from then on: the files of its packets and of the namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    packets = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(packets, TUNSETIFF, struct.pack("16sH22x", INTERFACE.encode(), IFF_TUN | IFF_NO_PI))
    for words in (
        ["link", "set", "lo", "up"],
        ["addr", "add", f"{host}/24", "dev", INTERFACE],
        ["link", "set", INTERFACE, "up", "mtu", "1400"],
    ):
        subprocess.run(["ip", *words], check=True)
    return packets, os.open("/proc/self/ns/net", os.O_RDONLY)


def main(megabits: float, round_trip: float, file: Path) -> None:
    """Until it is killed, or its parent ends."""
    parent = os.getppid()
    sides = [make_side(host) for host in HOSTS]
    new = file.with_suffix(".new")
    new.write_text(json.dumps([f"/proc/{os.getpid()}/fd/{namespace}" for _, namespace in sides]))
    new.replace(file)
    packets = [one for one, _ in sides]
    link = Link(megabits * 1e6 / 8, round_trip / 2e3)
    while os.getppid() == parent:
        while (found := link.take(time.monotonic())) is not None:
            os.write(packets[found[0]], found[1])
        for ready in select.select(packets, [], [], link.wait(time.monotonic()))[0]:
            link.send(packets.index(ready), os.read(ready, MOST_BYTES), time.monotonic())


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3]))
