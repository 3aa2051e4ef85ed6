"""Which containers a job had, as its application master lists them, and what they all print."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from hadoop.client.collected_logs import CollectedLog
from hadoop.errors import HadoopError
from hadoop.rest.container_logs import read_since
from hadoop.rest.masters import Addresses
from hadoop.rest.pages import NotKnown
from hadoop.rest.resourcemanager import ResourceManager
from jobs.application.following import PATIENCE_SECONDS
from jobs.application.status import ContainerStatus

STREAMS = ("stdout", "stderr")
NOTE = "note"
"""In place of a stream: what we say about a container, not what it printed."""
POLL_SECONDS = 1.0
Collect = Callable[[str, Sequence[str]], Iterable[CollectedLog]]
"""Reads the collected logs of an ended job, given its owner and containers; HadoopError when there are none."""
AWAY_SECONDS = 5.0
"""How long a NodeManager that did not answer is left alone."""
_STARTED = re.compile(r"^started (container_\S+) at (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Line:
    """One line that a container wrote to `stream`; `role` is master, or a role of its kind of job such as worker."""

    node_name: str
    role: str
    container_id: str
    stream: str
    line: str

    def __str__(self) -> str:
        mark = {"stdout": "|", "stderr": "!"}.get(self.stream, "-")
        return f"{self.node_name} {self.role} {mark} {self.line}".rstrip()


def is_container_of(job_id: str, container_id: str) -> bool:
    """Whether a container is one of this job: what a job tells is its owner's word.

    >>> is_container_of("application_1_0001", "container_e17_1_0001_01_000002")
    True
    """
    numbers = re.escape(job_id.removeprefix("application_"))
    return bool(re.fullmatch(rf"container_(e[0-9]{{1,10}}_)?{numbers}_[0-9]{{1,10}}_[0-9]{{1,20}}", container_id))


def parse_started(text: str, job_id: str) -> list[tuple[str, str]]:
    """(container id, NodeManager's HTTP address) of each worker of a job, from its application master's output.

    This is how masters told of their workers before they listed them. A runner prints what it likes there.

    >>> parse_started("plan\\nstarted container_1_0001_01_000002 at 127.0.1.11:8042\\n", "application_1_0001")
    [('container_1_0001_01_000002', '127.0.1.11:8042')]
    """
    return [found for found in _STARTED.findall(text) if is_container_of(job_id, found[0])]


@dataclass
class _Stream:
    """One file of a container: how many of its bytes were read, and those of them that end no line yet.

    `is_gone` says that its node did not give it when it was asked last.
    """

    name: str
    seen: int = 0
    rest: bytes = b""
    is_gone: bool = True

    def read(self, container_id: str, address: str, user: str, is_node: Callable[[], bool]) -> list[str]:
        """The lines that were completed since the last call."""
        self.is_gone = True
        piece = read_since(container_id, address, self.name, user, self.seen, is_node=is_node)
        if piece is None:
            return []
        self.is_gone = False
        begun_anew = piece.begin < self.seen
        self.seen = piece.end
        *lines, self.rest = ((b"" if begun_anew else self.rest) + piece.content).split(b"\n")
        return [line.decode(errors="replace") for line in lines]

    def take(self, log: CollectedLog) -> list[str]:
        """The lines of what was collected that are not among those that were read before."""
        begin = log.length - len(log.content)
        *lines, self.rest = (self.rest + log.content[max(0, self.seen - begin) :]).split(b"\n")
        self.seen = log.length
        return [line.decode(errors="replace") for line in lines]

    def last(self) -> list[str]:
        """What stands there without an end of line."""
        rest, self.rest = self.rest, b""
        return [rest.decode(errors="replace")] if rest else []


@dataclass
class _Container:
    """One container: what of its streams was read, and when its node is asked again if it did not answer."""

    container_id: str
    address: str
    role: str
    nodemanager: str
    is_node: Callable[[], bool]
    """Whether that is the address of a NodeManager, and not only what a program of a user told."""
    streams: tuple[_Stream, ...] = field(default_factory=lambda: tuple(map(_Stream, STREAMS)))
    away_until: float | None = None

    def line(self, stream: str, text: str) -> Line:
        return Line(self.address.rpartition(":")[0], self.role, self.container_id, stream, text)

    def read(self, user: str, now: float) -> Iterator[Line]:
        """New lines; one note when its node does not answer, and one when it does so again."""
        if self.away_until and now < self.away_until:
            return
        try:
            for stream in self.streams:
                for text in stream.read(self.container_id, self.nodemanager, user, self.is_node):
                    yield self.line(stream.name, text)
        except HadoopError as error:
            for stream in self.streams:
                stream.is_gone = True
            if not self.away_until:
                yield self.line(NOTE, f"what {self.container_id} prints cannot be read now: {error}")
            self.away_until = now + AWAY_SECONDS
            return
        if self.away_until:
            self.away_until = None
            yield self.line(NOTE, f"{self.address} answers again")

    def last(self) -> Iterator[Line]:
        for stream in self.streams:
            for text in stream.last():
                yield self.line(stream.name, text)

    def take(self, log: CollectedLog) -> Iterator[Line]:
        """The lines of a stream that was collected, if its node does not have it any more."""
        for stream in self.streams:
            if stream.name == log.stream and stream.is_gone:
                if passed := max(0, log.length - len(log.content) - stream.seen):
                    yield self.line(NOTE, f"of the {log.stream} of {self.container_id}, {passed} bytes are passed over")
                for text in stream.take(log):
                    yield self.line(stream.name, text)


class JobLogs:
    """The logs of all containers of a job: those of its application masters, and those that they started.

    `listed` tells the latter, given whether the job still runs. Of a master that lists none, they are looked for in
    what it prints, as masters of the version before told of them.
    """

    def __init__(
        self,
        managers: Addresses,
        application_id: str,
        user: str,
        listed: Callable[[bool], Iterable[ContainerStatus]] = lambda _: (),
    ) -> None:
        self._manager = ResourceManager(managers)
        self._application_id = application_id
        self._user = user
        self._listed = listed
        self._containers: dict[str, _Container] = {}
        self._are_listed = False
        self._node_addresses: set[str] = set()

    @property
    def bytes_seen(self) -> int:
        """Bytes that were read so far."""
        return sum(stream.seen for one in self._containers.values() for stream in one.streams)

    @property
    def owner(self) -> str:
        """Whose job it is; NotKnown when YARN does not know the job, HadoopError when it is away."""
        return str(self._manager.application(self._application_id)["user"])

    def is_running(self) -> bool:
        """Whether the job has not ended; NotKnown when YARN does not know the job, HadoopError when it is away."""
        return self._manager.is_running(self._application_id)

    def find_masters(self) -> None:
        """Look for attempts of the application master; HadoopError when there is none yet, or nobody knows."""
        for container_id, address in self._manager.master_containers(self._application_id):
            self._node_addresses.add(address)
            self._add(container_id, address, "master")

    def find_listed(self, alive: bool) -> None:
        """Look for containers that the application master lists."""
        for one in self._listed(alive):
            if is_container_of(self._application_id, one.container_id):
                self._are_listed = True
                self._add(one.container_id, one.log_address, one.role)

    def read(self, now: float) -> Iterator[Line]:
        """What was printed since the last call; containers that a master notes meanwhile are read at once."""
        waiting = list(self._containers.values())
        while waiting:
            container = waiting.pop(0)
            for line in container.read(self._user, now):
                yield line
                if container.role == "master" and line.stream == "stdout" and not self._are_listed:
                    noted = parse_started(line.line, self._application_id)
                    waiting += [new for found in noted if (new := self._add(*found, "worker"))]

    def last(self) -> Iterator[Line]:
        """Lines that nobody will complete any more."""
        for container in self._containers.values():
            yield from container.last()

    def collected(self, collect: Collect) -> Iterator[Line]:
        """What YARN has collected of what nodes do not have any more; a note when it cannot be read."""
        gone = [name for name, one in self._containers.items() if any(stream.is_gone for stream in one.streams)]
        if not gone:
            return
        try:
            for log in collect(self.owner, gone):
                yield from self._containers[log.container_id].take(log)
        except HadoopError as error:
            yield self._containers[gone[0]].line(NOTE, str(error))

    def _add(self, container_id: str, address: str, role: str) -> _Container | None:
        if container_id in self._containers:
            return None
        node = self._manager.nodemanager(address)
        is_node = partial(self._is_node, address)
        self._containers[container_id] = _Container(container_id, address, role, node, is_node)
        return self._containers[container_id]

    def _is_node(self, address: str) -> bool:
        """Whether YARN knows this address of a NodeManager; HadoopError when it does not answer."""
        if address not in self._node_addresses:
            self._node_addresses = self._manager.node_addresses()
        return address in self._node_addresses


def printed_lines(logs: JobLogs, collect: Collect | None = None) -> Iterator[Line]:
    """What stands in the logs now; HadoopError when no node keeps any of them.

    `collect` reads what YARN has collected after the job's end, None where it does not collect logs.
    """
    logs.find_masters()
    alive = logs.is_running()
    logs.find_listed(alive)
    notes = []
    collected = logs.collected(collect) if collect and not alive else ()
    for line in chain(logs.read(0.0), collected, logs.last()):
        yield line
        notes += [line.line] if line.stream == NOTE else []
    if notes and not logs.bytes_seen:
        raise HadoopError(f"no log could be read: {notes[0]}")


def follow(
    logs: JobLogs,
    collect: Collect | None = None,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[Line | str]:
    """What is printed until the job ends; between the lines, as text, what keeps us from reading.

    HadoopError when the ResourceManager does not know the job (any more), is away at the beginning, or stays away.
    """
    alive, trouble, heard = logs.is_running(), "", clock()
    lost: HadoopError | None = None
    while not lost:
        problem = ""
        try:
            alive, heard = logs.is_running(), clock()
            logs.find_masters()
            logs.find_listed(alive)
        except HadoopError as error:
            problem = str(error)
            lost = _lost_error(error, clock() - heard)
        if problem and problem != trouble and not lost:
            yield problem
        trouble = problem
        yield from logs.read(clock())
        pause(POLL_SECONDS)
        if not alive:  # for YARN a job has ended before its processes have: they had this moment for their last words
            break
    yield from logs.read(clock())
    if collect and not lost:
        yield from logs.collected(collect)
    yield from logs.last()
    if lost:
        raise lost


def _lost_error(error: HadoopError, silent: float) -> HadoopError | None:
    """Why a job cannot be followed any longer, after `silent` seconds without a word of the ResourceManager."""
    if isinstance(error, NotKnown):
        return error
    if silent <= PATIENCE_SECONDS:
        return None
    return HadoopError(f"after {silent:.0f} s it is not known whether the job still runs: {error}")
