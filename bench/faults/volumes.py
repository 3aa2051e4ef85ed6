"""Small volumes under folders of a machine, which can be filled to the last byte, and slowed down.

A volume is a file with a file system in it, on a loop device of its own. What its folders held moves into it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.info.errors import BenchError

SIZE = "2G"
THROTTLES = Path("/sys/fs/cgroup/blkio")
"""Control groups of version 1 hold back what processes of a group read from a device and write to it."""
LIMITS = ("blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device")

# Each is a script for sh that is given the volume's own folder, then the folders that it lies under.
# A container has no nodes of loop devices in /dev.
_ATTACH = """
[ -e /dev/loop-control ] || mknod /dev/loop-control c 10 237
number=0
while [ $number -lt 32 ]; do [ -e /dev/loop$number ] || mknod /dev/loop$number b 7 $number; number=$((number + 1)); done
home=$1; shift
mount -o loop "$home/volume.img" "$home/volume"
part=0
for folder; do part=$((part + 1)); mount --bind "$home/volume/$part" "$folder"; done
"""
_MAKE = f"""
home=$1; shift
mkdir -p "$home/volume" "$home/whole"
truncate -s {SIZE} "$home/volume.img"
mkfs.ext4 -q -F -m 0 "$home/volume.img"
mount -o loop "$home/volume.img" "$home/whole"
part=0
for folder; do
  part=$((part + 1))
  mkdir -p "$folder"
  cp -a -T "$folder" "$home/whole/$part"
done
umount "$home/whole"
"""
_DETACH = """
home=$1; shift
for folder; do umount "$folder"; done
part=0
for folder; do
  part=$((part + 1))
  find "$folder" -mindepth 1 -delete
  cp -a -T "$home/volume/$part" "$folder"
done
umount "$home/volume"
rm -r "$home"
"""
_FILL = """
cd "$1/volume"
fallocate -l "$(df --output=avail -B1 . | tail -n 1)" filler || true
cat /dev/zero > rest 2> /dev/null || true
df --output=avail -B1 . | tail -n 1
"""
_EMPTY = """
rm -f "$1/volume/filler" "$1/volume/rest"
"""
_DEVICE = """
findmnt -n -o MAJ:MIN --mountpoint "$1/volume"
"""
MAKE_NODES = _ATTACH.partition("home=")[0]

Run = Callable[..., str]
"""What a program prints that root runs on the machine, by its words; BenchError when it fails."""


@dataclass(frozen=True)
class Volume:
    """One volume: `machine` names it for people, `home` is its own folder, `folders` are those that it lies under."""

    machine: str
    run: Run
    home: str
    folders: Sequence[str]

    def make(self) -> None:
        """Make the volume with what its folders hold; nothing may use them. It is not attached."""
        self._shell(MAKE_NODES + _MAKE)

    def attach(self) -> None:
        """Put it under its folders."""
        self._shell(_ATTACH)

    def detach(self) -> None:
        """Give the folders what the volume holds, and throw it away; nothing may use them."""
        self._shell(_DETACH)

    def attach_script(self) -> str:
        """What a machine runs when it starts."""
        words = " ".join([self.home, *self.folders])
        return f"#!/bin/sh\nset -eu\nset -- {words}\n{_ATTACH}"

    @contextmanager
    def filled(self) -> Iterator[None]:
        """Full to the last byte until the end of the block."""
        try:
            self._shell(_FILL)
            yield
        finally:
            self.empty()

    def empty(self) -> None:
        """Take away what filled it."""
        self._shell(_EMPTY)

    @contextmanager
    def slowed(self, bytes_per_second: int) -> Iterator[None]:
        """Read and written no faster than this until the end of the block."""
        device = self._shell(_DEVICE).strip()
        _limit(device, bytes_per_second)
        try:
            yield
        finally:
            _limit(device, 0)

    def _shell(self, script: str) -> str:
        return self.run("sh", "-euc", script, "sh", self.home, *self.folders)


def find_obstacle() -> str:
    """Why this machine's volumes cannot be slowed down, or nothing."""
    if (THROTTLES / LIMITS[0]).exists():
        return ""
    return f"{THROTTLES} has no limits of devices: this machine's control groups must be of version 1, with blkio"


def _limit(device: str, bytes_per_second: int) -> None:
    """Hold back every group, the root's too, which writes what others have left in memory; 0 lifts the limit."""
    for folder, _, files in os.walk(THROTTLES):
        for limit in [one for one in LIMITS if one in files]:
            try:
                Path(folder, limit).write_text(f"{device} {bytes_per_second}")
            except OSError as error:
                if Path(folder).exists():  # else the group has ended since it was found
                    raise BenchError(f"the device {device} cannot be slowed down: {error}") from None
