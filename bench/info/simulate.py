"""Simulated nodes: what they would send, byte for byte as a real agent writes it, and the process that sends it."""

from __future__ import annotations

import json
import multiprocessing
import resource
import selectors
import time
import uuid
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

from bench.info.errors import BenchError
from bench.info.figures import quantile
from bench.info.scale import Scale
from bench.info.wire import Address, Line, request
from infosvc.wire.records import Outcome, Report, Run

# Spawned, so that the child carries nothing of ours along.
processes = multiprocessing.get_context("spawn")

Tokens = dict[str, str]  # by node name

_STAMP = "@stamp@"
_SEQUENCE = 987_654_321


def stamp() -> str:
    """Now, as the text of a value: this machine's monotonic clock is the same in all its processes."""
    return f"{time.monotonic():.6f}"


class Fleet:
    """Agents of many nodes, each with its token. A value is the moment it was measured, so a reader knows its age."""

    def __init__(self, names: Sequence[str], tokens: Tokens) -> None:
        self._tokens = tokens
        boot = uuid.uuid4().hex
        self._full = _halves(boot, [Run(name, Outcome.OK, 0.0123, _STAMP, exit_status=0) for name in names])
        self._empty = _halves(boot, [])
        self._sequences: Counter[str] = Counter()

    def report(self, node_name: str, now: str) -> bytes:
        """The next report of a node, every value measured `now`."""
        head, tail = self._full
        return self._request(node_name, head, tail.replace(_STAMP.encode(), now.encode()))

    def heartbeat(self, node_name: str) -> bytes:
        """A report without runs."""
        return self._request(node_name, *self._empty)

    def _request(self, node_name: str, head: bytes, tail: bytes) -> bytes:
        self._sequences[node_name] += 1
        body = b"%s%d%s" % (head, self._sequences[node_name], tail)
        return request("POST", f"/api/v1/nodes/{node_name}/report", self._tokens[node_name], body)


def _halves(boot: str, runs: list[Run]) -> tuple[bytes, bytes]:
    """A report's bytes before and after its sequence number."""
    body = json.dumps(Report(boot, _SEQUENCE, "bench", tuple(runs)).to_json()).encode()
    head, _, tail = body.partition(b"%d" % _SEQUENCE)
    return head, tail


class Sender:
    """Sends what nodes have to say when it is due, evenly over the interval, each on a connection of its own."""

    def __init__(self, address: Address, tokens: Tokens, scale: Scale, node_names: Sequence[str]) -> None:
        self._fleet = Fleet(scale.data_names, tokens)
        self._nodes = node_names
        self._pause = scale.interval / len(node_names)
        self._heartbeats = scale.heartbeats
        self._address = address
        self._lines: dict[str, Line] = {}  # made when a node has something to say, as agents make theirs
        self._selector = selectors.DefaultSelector()
        self._waiting: dict[Line, deque[bytes]] = defaultdict(deque)
        self._busy: set[Line] = set()
        self._ticks = 0
        self._late = 0.0
        self._took: list[float] = []

    def run(self, until: Connection) -> dict[str, float]:
        """Send until something is said on `until`; then how it went."""
        begun = time.monotonic()
        with self._selector as selector:
            selector.register(until, selectors.EVENT_READ, None)
            while True:
                due = begun + self._ticks * self._pause
                ready = selector.select(max(0.0, due - time.monotonic()))
                if any(key.data is None for key, _ in ready):
                    return self._summary(time.monotonic() - begun)
                for key, _ in ready:
                    self._receive(key.data)
                if (now := time.monotonic()) >= due:
                    self._late = max(self._late, now - due)
                    self._tick()

    def _tick(self) -> None:
        """One node reports; the one that did so half an interval ago gives a sign of life."""
        self._send(self._ticks, heartbeat=False)
        if self._heartbeats:
            self._send(self._ticks + len(self._nodes) // 2, heartbeat=True)
        self._ticks += 1

    def _send(self, number: int, *, heartbeat: bool) -> None:
        node_name = self._nodes[number % len(self._nodes)]
        line = self._line_of(node_name)
        message = self._fleet.heartbeat(node_name) if heartbeat else self._fleet.report(node_name, stamp())
        if line in self._busy:
            self._waiting[line].append(message)
        else:
            self._busy.add(line)
            line.send(message)

    def _line_of(self, node_name: str) -> Line:
        if node_name not in self._lines:
            self._lines[node_name] = Line(self._address)
            self._selector.register(self._lines[node_name], selectors.EVENT_READ, self._lines[node_name])
        return self._lines[node_name]

    def _receive(self, line: Line) -> None:
        if not line.receive():
            return
        line.check()
        self._took.append(time.monotonic() - line.sent)
        if self._waiting[line]:
            line.send(self._waiting[line].popleft())
        else:
            self._busy.discard(line)

    def _summary(self, seconds: float) -> dict[str, float]:
        return {
            "reports_per_second": self._ticks / seconds,
            "unanswered": float(len(self._busy) + sum(map(len, self._waiting.values()))),
            "latest_start_seconds": self._late,
            "answer_p99_seconds": quantile(self._took or [0.0], 0.99),
        }


def _send_in_child(talk: Connection, address: Address, tokens: Tokens, scale: Scale, node_names: Sequence[str]) -> None:
    said: dict[str, Any]
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        sender = Sender(address, tokens, scale, node_names)
        talk.send({})  # ready
        said = sender.run(talk)
    except BenchError as error:
        said = {"error": str(error)}
    with suppress(BrokenPipeError):
        talk.send(said)


@contextmanager
def sending(address: Address, tokens: Tokens, scale: Scale, node_names: Sequence[str]) -> Iterator[dict[str, float]]:
    """Nodes that report while the block runs; how it went is in the yielded map after the block.

    BenchError when the service refused a report, or fell behind.
    """
    said: dict[str, Any] = {}
    ours, theirs = processes.Pipe()
    child = processes.Process(target=_send_in_child, args=(theirs, address, tokens, scale, node_names), daemon=True)
    child.start()
    theirs.close()
    try:
        _check(_hear(ours), scale)
        try:
            yield said
        finally:  # also when the block failed: what the nodes ran into is the cause of that
            said.update(_last_words(ours))
            _check(said, scale)
    finally:
        child.terminate()
        child.join()
        ours.close()


def _last_words(talk: Connection) -> dict[str, Any]:
    with suppress(OSError):  # it may have ended already, having said why
        talk.send("stop")
    return _hear(talk)


def _hear(talk: Connection) -> dict[str, Any]:
    try:
        words: dict[str, Any] = talk.recv()
    except (EOFError, OSError) as error:
        raise BenchError("the process of the simulated nodes died") from error
    return words


def _check(said: dict[str, Any], scale: Scale) -> None:
    if "error" in said:
        raise BenchError(f"the simulated nodes could not report: {said['error']}")
    if said.get("unanswered", 0.0) > scale.late * scale.nodes / scale.interval:
        raise BenchError(f"the service fell behind: {said['unanswered']:g} reports were still unanswered")
