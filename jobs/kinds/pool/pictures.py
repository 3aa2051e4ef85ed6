"""Single pictures that users ask a pool about: each waits here for a worker, and whoever asked waits for its row.

To the workers of a pool this is one more job, which is never done: its leases are urgent, are of what waits at that
moment, and are kept nowhere. Pictures that end processes or workers are found and blamed as those of a job are. What
nobody waits for any more is forgotten, and with the application master all of it is: whoever asked asks again.

    row = pictures.ask(Picture(name="cat.jpg"), content, len(content), wake=lambda: None)
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pyarrow as pa

from jobs.application.calls import Caller, Refused, Request, decode_body, decode_query
from jobs.application.coordinator import Container, End, Seat
from jobs.itemwork.blame import Blame
from jobs.itemwork.calls import Commit, Died, Take, Working
from jobs.itemwork.commits import errors_in
from jobs.itemwork.messages import Group, Item, Task
from jobs.kinds.pool.wishes import Picture, Refusal
from locality.leases import Answer

MOST_PICTURES, MOST_BYTES = 256, 64 << 20
"""In hand at once, waiting and with workers, also if nobody waits for them any more; the bytes are of those that are in
no file of HDFS."""
LEASE_BYTES = 16 << 20
"""Of pictures that travel together, unless a single one has more."""
LARGEST_ANSWER = 1 << 20
"""Bytes of a row: that of a network with large outputs is for a job."""
LOOK_SECONDS, LONG_LOOK_SECONDS = 0.05, 1.0
"""How often whoever waits looks whether there is a worker for the next picture, and whether its own was given back."""


@dataclass(eq=False)
class _Asked:
    """A picture in hand, and whoever waits for its `row`; `node` has it now."""

    item: Item
    name: str
    came: float
    node: str = ""
    row: dict[str, Any] | None = None
    done: threading.Event = field(default_factory=threading.Event)

    def answer(self, row: Mapping[str, Any]) -> None:
        """Its row, under the name that the user gave it."""
        self.row = {**row, "path": self.name, "milliseconds": round(1000 * (time.monotonic() - self.came), 3)}
        self.done.set()


@dataclass(frozen=True)
class _Lease:
    """Pictures that a container has, by the names of their items."""

    node: str
    container_id: str
    asked: Mapping[str, _Asked]

    def items(self, names: Iterable[str]) -> list[Item]:
        """Those of its items that have these names."""
        return [self.asked[name].item for name in names if name in self.asked]


class Pictures:
    """Safe for several threads. A lease has at most `most` pictures; `attempt` is of the pool's application master."""

    name, weight = "pictures", 1.0

    def __init__(self, pool_name: str, attempt: int, most: int, find_flaw: Callable[[pa.Schema], str]) -> None:
        self.nodes: frozenset[str] = frozenset()
        self.most = most
        self._pool_name = pool_name
        self._attempt = attempt
        self._find_flaw = find_flaw
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._asked: dict[str, _Asked] = {}
        self._waiting: dict[str, _Asked] = {}
        self._leases: dict[str, _Lease] = {}
        self._blame = Blame()
        self._calls: Mapping[str, Callable[[Request], Mapping[str, Any] | None]] = {
            "/take": self._take,
            "/commit": self._commit,
            "/heartbeat": self._heartbeat,
            "/working": self._note_begin,
            "/died": self._note_death,
        }

    def ask(self, wish: Picture, content: bytes | None, length: int, wake: Callable[[], None]) -> Mapping[str, Any]:
        """The row of a picture, once a worker has looked at it; Refusal when there is no room, or it takes too long.

        `content` are its bytes, None for a file of HDFS that has so many. `wake` calls a worker that waits.
        """
        asked, until = self._add(wish, content, length), time.monotonic() + wish.seconds
        try:
            while asked.row is None and (left := until - time.monotonic()) > 0:
                if self._is_next(asked):
                    wake()
                asked.done.wait(min(left, LONG_LOOK_SECONDS if asked.node else LOOK_SECONDS))
            if asked.row is None:
                raise self._late(asked, wish.seconds)
            return asked.row
        finally:
            with self._lock:
                del self._asked[asked.item.name]
                self._waiting.pop(asked.item.name, None)

    @property
    def in_hand(self) -> int:
        """How many somebody waits for."""
        return len(self._asked)

    def queue(self) -> tuple[int, float]:
        """How many a worker would get now, and for how many seconds the first of them has waited."""
        with self._lock:
            first = next(iter(self._waiting.values()), None)
            return min(len(self._waiting), self.most), time.monotonic() - first.came if first else 0.0

    def has_untold(self, node: str, holding: Collection[str]) -> bool:
        """Whether a worker has leases beside these, of which it does not know yet."""
        with self._lock:
            return any(lease.node == node and name not in holding for name, lease in self._leases.items())

    def hear(self, call: str, request: Request) -> Mapping[str, Any] | None:
        """Answer a worker, as each job does; None after a fault of ours, which ends no more than what is in hand."""
        try:
            return self._calls[call](request)
        except Refused:
            raise
        except Exception as error:
            traceback.print_exc()
            self._end_all(f"the pool's master failed: {type(error).__name__}: {error}")
            return None

    def on_start(self, container: Container) -> None:
        """A worker may look at pictures."""
        node = container.seat.node_name
        with self._lock:
            if self._blame.container(node) not in (None, container.container_id):
                self._lose(node)
            self._blame.set_container(node, container.container_id)
            self.nodes |= {node}

    def on_end(self, container: Container, end: End) -> None:
        """What a worker held waits again, before all others, but for what is to blame for that."""
        node = container.seat.node_name
        with self._lock:
            if self._blame.container(node) != container.container_id:
                return
            held = [list(lease.asked) for lease in self._leases.values() if lease.node == node]
            if end.exit.blames:
                self._blame.note_container_death(node, held, end.text)
            self._lose(node)

    def pop_excused(self) -> Sequence[str]:
        """The containers whose end turned out to be the fault of a picture; each is told once."""
        with self._lock:
            return self._blame.pop_excused()

    def give_back(self, node: str) -> None:
        """What the worker of a node has waits again, as it has not been heard for long; its rows come too late then."""
        with self._lock:
            self._take_back(node)

    def is_suspect(self, container: Container) -> bool:
        """Whether a worker looks at pictures that are suspected of ending workers."""
        with self._lock:
            return self._blame.has_announced(container.seat.node_name, container.container_id)

    def keep(self, seat: Seat) -> None:
        """No picture is meant for a certain worker."""

    def _add(self, wish: Picture, content: bytes | None, length: int) -> _Asked:
        with self._lock:
            leased = {name: one for lease in self._leases.values() for name, one in lease.asked.items()}
            held = leased | self._asked
            size = sum(len(one.item.content or b"") for one in held.values()) + len(content or b"")
            if len(held) >= MOST_PICTURES or size > MOST_BYTES:
                raise Refusal(
                    f"the pool {self._pool_name} is full: it has {len(held)} single pictures in hand",
                    "ask again a moment later; many pictures at once are for `nodewise job submit --pool`",
                    True,
                )
            name = f"{self._attempt}-{next(self._numbers)}"
            asked = _Asked(Item(name, wish.path, None, length, content), wish.name or wish.path, time.monotonic())
            self._asked[name] = self._waiting[name] = asked
        return asked

    def _is_next(self, asked: _Asked) -> bool:
        with self._lock:
            return next(iter(self._waiting.values()), None) is asked

    def _late(self, asked: _Asked, seconds: float) -> Refusal:
        """Why a picture has no row in time."""
        remedy = f"`nodewise pool show {self._pool_name}` tells what its workers do"
        if asked.node:
            why = f"the worker on {asked.node} did not answer"
        elif self.nodes:
            why = "no worker was free for it"
        else:
            why = "no worker was there"
        return Refusal(
            f"the pool {self._pool_name} has no row of {asked.name} after {seconds:g} s: {why}", remedy, True
        )

    def _take(self, request: Request) -> Mapping[str, Any]:
        """A lease of what waits, or again what an answer that was lost had given."""
        call = decode_body(request.body, Take)
        with self._lock:
            if self._blame.container(call.node_name) != call.container_id:
                return {}  # it has ended since it asked
            for name, lease in self._leases.items():
                if lease.node == call.node_name and name not in call.holding:
                    return self._tell(name, lease, self._blame.split(lease.items(lease.asked)))
            if not (group := self._next_group()):
                return {}
            asked = {item.name: self._waiting.pop(item.name) for item in group.items}
            for one in asked.values():
                one.node = call.node_name
            name = f"{self._attempt}-{next(self._numbers)}"
            lease = self._leases[name] = _Lease(call.node_name, call.container_id, asked)
            return self._tell(name, lease, (group,))

    def _next_group(self) -> Group | None:
        """The picture that waits first, with those that may be done beside it; None where nothing waits."""
        items: list[Item] = []
        for asked in self._waiting.values():
            size = sum(len(item.content or b"") for item in items) + len(asked.item.content or b"")
            if len(items) >= self.most or (items and size > LEASE_BYTES):
                break
            items.append(asked.item)
        return next((group for group in self._blame.split(items) if items[0] in group.items), None)

    def _tell(self, name: str, lease: _Lease, groups: Sequence[Group]) -> Mapping[str, Any]:
        return {"lease": Task(name, tuple(groups), self._blame.convictions(lease.asked), urgent=True).to_json()}

    def _commit(self, request: Request) -> Mapping[str, Any]:
        """Give each row to whoever waits for it."""
        call = decode_query(request.query, Commit)
        with self._lock:
            lease = self._find(call.lease, call)
        if lease is None:
            return {"answer": Answer.UNKNOWN.name.lower(), "why": "its pictures were given to others"}
        errors_in(request.body, lease.items(lease.asked), self._find_flaw)
        table = pa.ipc.open_stream(request.body).read_all()
        for number, name in enumerate(table.column("path").to_pylist()):
            row = _row(table.slice(number, 1))
            lease.asked[name].answer({**row, "work_milliseconds": 1000 * call.seconds, "together": len(lease.asked)})
        with self._lock:
            if self._leases.pop(call.lease, None):
                self._blame.clear(call.node_name, list(lease.asked))
        return {"answer": Answer.ACCEPTED.name.lower(), "why": Answer.ACCEPTED.value}

    def _heartbeat(self, request: Request) -> Mapping[str, Any]:
        call = decode_body(request.body, Caller)
        with self._lock:
            return {"holding": [name for name, lease in self._leases.items() if lease.node == call.node_name]}

    def _note_begin(self, request: Request) -> None:
        call = decode_body(request.body, Working)
        with self._lock:
            if lease := self._find(call.lease, call):
                self._blame.announce(call.node_name, [name for name in call.group if name in lease.asked])
            elif not call.group:
                self._end_announced(call)

    def _note_death(self, request: Request) -> Mapping[str, Any]:
        call = decode_body(request.body, Died)
        with self._lock:
            lease = self._find(call.lease, call)
            items = lease.items(call.group) if lease else []
            if not items:
                self._end_announced(call)
                return {"groups": [], "convicted": {}}
            names = [item.name for item in items]
            self._blame.note_process_death(call.node_name, names, call.reason)
            groups = [group.to_json() for group in self._blame.split(items)]
            return {"groups": groups, "convicted": self._blame.convictions(names)}

    def _find(self, name: str, caller: Caller) -> _Lease | None:
        """A lease of this container; the lock is held."""
        lease = self._leases.get(name)
        return lease if lease and lease.container_id == caller.container_id else None

    def _end_announced(self, caller: Caller) -> None:
        """A worker is done with what it announced, although the lease was given to others; the lock is held."""
        if self._blame.container(caller.node_name) == caller.container_id:
            self._blame.announce(caller.node_name, ())

    def _end_all(self, why: str) -> None:
        """Whoever waits hears why there is no row, and no worker has anything."""
        with self._lock:
            self._leases.clear()
            self._waiting.clear()
            for asked in self._asked.values():
                asked.answer({"node_name": asked.node, "error": why})

    def _lose(self, node: str) -> None:
        """No worker of a node has anything any more, nor gets anything; the lock is held."""
        self._take_back(node)
        self._blame.forget_container(node)
        self.nodes -= {node}

    def _take_back(self, node: str) -> None:
        """What a node has waits again, before all others, and what is convicted has its row; the lock is held."""
        back: dict[str, _Asked] = {}
        for name in [name for name, lease in self._leases.items() if lease.node == node]:
            back |= {one: asked for one, asked in self._leases.pop(name).asked.items() if one in self._asked}
        for asked in back.values():
            asked.node = ""
        self._waiting = {**back, **self._waiting}
        for name, why in self._blame.convictions(self._waiting).items():
            self._waiting.pop(name).answer({"node_name": node, "error": why})


def _row(table: pa.Table) -> dict[str, Any]:
    """The one row of a table, with an error in place of what is too large to be answered."""
    if table.nbytes <= LARGEST_ANSWER:
        found: dict[str, Any] = table.to_pylist()[0]
        return found
    said = f"its outputs have {table.nbytes:,} bytes, and {LARGEST_ANSWER:,} are answered: a job stores them"
    return {"node_name": table.column("node_name")[0].as_py(), "error": said}
