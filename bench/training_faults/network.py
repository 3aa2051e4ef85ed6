"""The network of a local cluster's nodes, which can be cut between some of them: packets that the kernel drops.

All nodes are on one machine: what one sends to another goes over loopback, and a connection that a node has opened
comes from 127.0.0.1. So the processes of each node are in a control group of their own, and a connection bears the
number of the node whose process has opened it; at its other end is the node whose address it has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.faults.partitions import nft
from bench.info.errors import BenchError

TABLE = f"nodewise_bench_{os.getpid()}"
MOUNTS = Path("/proc/mounts")
GROUPS = Path("/sys/fs/cgroup")
"""Where nft looks for control groups."""
EVERYBODY = "*"


@dataclass(frozen=True)
class Network:
    """Of nodes by their addresses; `top` is the control group of all, below GROUPS."""

    nodes: Sequence[str]
    top: Path

    def enter(self, node: str, pid: int) -> None:
        """Let a process be on a node, with all that it starts from now on."""
        (self._group(node) / "cgroup.procs").write_text(str(pid))

    @contextmanager
    def cut(self, *ways: tuple[str, str]) -> Iterator[None]:
        """Drop what goes these ways until the end of the block; see `rules`."""
        self._load([rule for sender, receiver in ways for rule in self.rules(sender, receiver)])
        try:
            yield
        finally:
            self.heal()

    def heal(self) -> None:
        """Let everything through again."""
        self._load([])

    def rules(self, sender: str, receiver: str) -> list[str]:
        """What drops all that a node sends to another; `*` is everybody else, as sender or as receiver.

        >>> Network(["127.0.2.11", "127.0.2.12"], Path("/top")).rules("127.0.2.11", "127.0.2.12")[0]
        'ct mark 1 ct direction original ip daddr 127.0.2.12 drop'
        """
        if receiver == EVERYBODY:
            mark = self._mark(sender)
            return [
                f"ct mark {mark} ct direction original ip daddr != {sender} drop",
                f"ct mark != {mark} ct direction reply ip saddr {sender} drop",
            ]
        if sender == EVERYBODY:
            mark = self._mark(receiver)
            return [
                f"ct mark != {mark} ct direction original ip daddr {receiver} drop",
                f"ct mark {mark} ct direction reply ip saddr != {receiver} drop",
            ]
        return [
            f"ct mark {self._mark(sender)} ct direction original ip daddr {receiver} drop",
            f"ct mark {self._mark(receiver)} ct direction reply ip saddr {sender} drop",
        ]

    def make(self) -> None:
        """BenchError where this machine cannot tell its nodes' packets apart."""
        try:
            for node in self.nodes:
                self._group(node).mkdir(parents=True)
        except OSError as error:
            raise BenchError(f"no control group can be made for the nodes: {error}; run this as root") from None
        self.heal()

    def remove(self) -> None:
        """Once all processes of the nodes have ended."""
        nft(f"table inet {TABLE}\ndelete table inet {TABLE}")
        for group in (*map(self._group, self.nodes), self.top):
            with suppress(OSError):  # a process that has just ended may still be there; an empty group harms nobody
                group.rmdir()

    def _load(self, drops: Sequence[str]) -> None:
        """The marks stay, whatever is dropped: a connection is marked when it is opened."""
        marks = [
            f'ct state new socket cgroupv2 level 2 "{self._group(node).relative_to(GROUPS)}" ct mark set {number}'
            for number, node in enumerate(self.nodes, 1)
        ]
        chain = "\n".join(["type filter hook output priority 0; policy accept;", *marks, *drops])
        nft(f"table inet {TABLE}\nflush table inet {TABLE}\ntable inet {TABLE} {{\nchain output {{\n{chain}\n}}\n}}")

    def _mark(self, node: str) -> int:
        return self.nodes.index(node) + 1

    def _group(self, node: str) -> Path:
        return self.top / node


@contextmanager
def network(nodes: Sequence[str]) -> Iterator[Network]:
    """Of nodes on which nothing runs yet, until the end of the block."""
    made = Network(nodes, _find_groups() / f"nodewise-bench-{os.getpid()}")
    made.make()
    try:
        yield made
    finally:
        made.remove()


def _find_groups() -> Path:
    """The tree of control groups of version 2; BenchError without one that nft finds."""
    for line in MOUNTS.read_text().splitlines():
        _, folder, kind, *_ = line.split()
        if kind == "cgroup2" and Path(folder).is_relative_to(GROUPS):
            return Path(folder)
    raise BenchError(f"there are no control groups of version 2 below {GROUPS}: nodes' packets cannot be told apart")
