"""What happens, told to those who watch.

One log holds the newest events of everybody; a watcher is a place in it. Whoever falls behind its end is told how much
was missed, and a commit costs the writer one entry, however many values it brought and however many watch.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from infosvc.settings import Clock
from infosvc.state.configuration import Configuration, SlotRequest
from infosvc.state.current_values import Cell
from infosvc.state.transaction import Commit, Key
from infosvc.state.value import Value
from infosvc.wire.answers import Event
from infosvc.wire.errors import NotReady
from infosvc.wire.records import Producer

TYPES = ("value", "node", "slot", "producer", "job", "task")
GAP = "gap"
MOST_EVENTS = 100_000  # in the log; what is older is missed
MOST_TEXT = 32_000_000  # characters of values in the log
RESUME_SECONDS = 60.0  # how long the log is kept up after the last watcher has gone
IDS_PER_SECOND = 1_000_000  # the first id follows from the time, so that those of a later service are larger

_Happening = tuple[str, Mapping[str, Any]]  # type, data


@dataclass(frozen=True)
class Filter:
    """Which events a watcher wants; an empty set wants all.

    An event without a data name, as those of nodes and jobs are, passes a filter of names if its type is asked for.
    Events of tasks, and of jobs that name their owner, are told of those that one of `owners` has, or None for
    everybody's.
    """

    types: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()
    owners: frozenset[str] | None = frozenset()

    def may_see(self, kind: str, data: Mapping[str, Any]) -> bool:
        """Whether the watcher may know of an event."""
        has_owner = kind == "task" or (kind == "job" and "owner" in data)
        return not has_owner or self.owners is None or data["owner"] in self.owners

    def takes(self, kind: str, data_name: str | None, node_name: str | None) -> bool:
        """Whether an event passes."""
        named = kind in self.types if data_name is None else data_name in self.names
        return (
            (not self.types or kind in self.types)
            and (not self.names or named)
            and (not self.nodes or node_name in self.nodes)
        )


class _Entry(NamedTuple):
    """Events that happened together: `first` is the id of the first, `text` counts the characters of the values, and
    `shift` makes Unix seconds of monotonic ones."""

    first: int
    happenings: list[_Happening]
    values: Mapping[Cell, Value | None]
    shift: float
    text: int

    @property
    def end(self) -> int:
        return self.first + len(self.happenings) + len(self.values)

    def events(self, start: int, wanted: Filter) -> Iterator[Event]:
        """Those from id `start` on that pass."""
        for number, (kind, data) in enumerate(self.happenings, self.first):
            is_wanted = wanted.takes(kind, data.get("data_name"), data.get("node_name"))
            if number >= start and is_wanted and wanted.may_see(kind, data):
                yield Event(number, kind, data)
        if wanted.types and "value" not in wanted.types:
            return
        names, nodes = wanted.names, wanted.nodes
        for number, cell in enumerate(self.values, self.first + len(self.happenings)):
            # As `takes` says, in place: at full speed a watcher passes over 100,000 values a second.
            if (not names or cell[0] in names) and (not nodes or cell[1] in nodes) and number >= start:
                yield Event(number, "value", _value_event(cell, self.values[cell], self.shift))


class Broker:
    """Hears of every commit and of what else is published; any thread may publish or watch."""

    def __init__(self, clock: Clock, most_watchers: int) -> None:
        self._clock = clock
        self._most_watchers = most_watchers
        self._log: deque[_Entry] = deque()
        self._next = int(clock.wall() * IDS_PER_SECOND)
        self._first = self._next
        self._counted_from = self._next  # ids from here on were given one by one
        self._text = 0
        self._news = threading.Condition()
        self._watchers: set[Watcher] = set()
        self._most_of_one = max(1, most_watchers // 4)
        self._left = float("-inf")
        self.closed = False

    @property
    def watching(self) -> int:
        """How many watch."""
        return len(self._watchers)

    def hear(self, commit: Commit) -> None:
        """Called after a commit; costs next to nothing as long as nobody watches."""
        if not self._has_listeners():
            return
        happenings = [found for table, key in sorted(commit.changed) for found in _happenings(table, key, commit)]
        if happenings or commit.values:
            self._append(happenings, commit.values)
        if any(table == "tokens" for table, _ in commit.changed):
            self._rouse()

    def publish(self, kind: str, data: Mapping[str, Any]) -> None:
        """Tell one event that is not a commit."""
        if self._has_listeners():
            self._append([(kind, data)], {})

    def watch(self, wanted: Filter, last_id: int | None = None, who: str = "") -> Watcher:
        """A new watcher, of what follows `last_id` or of what happens from now on.

        NotReady when too many watch, or more than a quarter of them for one caller `who`, named by token or address.
        """
        with self._news:
            if self.closed or len(self._watchers) >= self._most_watchers:
                raise NotReady(
                    f"{self._most_watchers} callers watch events already", remedy="end one of them, or try again later"
                )
            if who and sum(watcher.who == who for watcher in self._watchers) >= self._most_of_one:
                raise NotReady(
                    f"this caller watches events {self._most_of_one} times already", remedy="end one of them first"
                )
            if not self._has_listeners():
                self._forget()
            watcher = Watcher(self, wanted, self._next if last_id is None else last_id + 1, who)
            self._watchers.add(watcher)
            self._news.notify_all()
            return watcher

    def is_watched(self, kind: str) -> bool:
        """Whether somebody watches events of a type, such as belong to no data name and no node."""
        return any(watcher.wanted.takes(kind, None, None) for watcher in self._watchers)

    def wait_until_watched(self, kind: str) -> bool:
        """Wait for somebody who watches events of a type; False when the service ends instead."""
        with self._news:
            self._news.wait_for(lambda: self.closed or self.is_watched(kind))
            return not self.closed

    def leave(self, watcher: Watcher) -> None:
        """End a watcher; once is enough."""
        with self._news:
            if watcher in self._watchers:
                self._watchers.remove(watcher)
                self._left = self._clock.monotonic()
            self._news.notify_all()

    def close(self) -> None:
        """End all watchers at once."""
        with self._news:
            self.closed = True
            self._news.notify_all()

    def since(self, start: int, patience: float) -> tuple[Event | None, list[_Entry], int]:
        """What the log has from id `start` on, and the id that comes next; first the gap, when something was missed.

        Waits `patience` seconds for something new, less when watchers must look up.
        """
        with self._news:
            if start == self._next and not self.closed:
                self._news.wait(patience)
            entries: list[_Entry] = []
            for entry in reversed(self._log):
                if entry.end <= start:
                    break
                entries.append(entry)
            return self._gap(start), entries[::-1], self._next

    def _gap(self, start: int) -> Event | None:
        if self._first <= start <= self._next:
            return None
        missed = self._first - start if self._counted_from <= start < self._first else None
        return Event(self._first - 1, GAP, {"missed": missed})

    def _has_listeners(self) -> bool:
        return bool(self._watchers) or self._clock.monotonic() - self._left < RESUME_SECONDS

    def _append(self, happenings: list[_Happening], values: Mapping[Cell, Value | None]) -> None:
        text = sum(len(value.text) for value in values.values() if value is not None and value.text is not None)
        with self._news:
            entry = _Entry(self._next, happenings, values, self._clock.wall() - self._clock.monotonic(), text)
            self._next = entry.end
            self._text += text
            self._log.append(entry)
            while len(self._log) > 1 and (self._next - self._first > MOST_EVENTS or self._text > MOST_TEXT):
                oldest = self._log.popleft()
                self._first, self._text = oldest.end, self._text - oldest.text
            self._news.notify_all()

    def _rouse(self) -> None:
        """Watchers must look at once whether their tokens are still good: an id passes that belongs to no event."""
        with self._news:
            self._next += 1
            self._news.notify_all()

    def _forget(self) -> None:
        """After a time in which nobody listened, the log says nothing about what happened."""
        self._log.clear()
        self._text = 0
        self._next += 1
        self._first = self._counted_from = self._next


class Watcher:
    """One who watches: its place in the log is the id of the next event that it has not seen."""

    def __init__(self, broker: Broker, wanted: Filter, place: int, who: str) -> None:
        self._broker = broker
        self.wanted = wanted
        self.place = place
        self.who = who

    @property
    def has_ended(self) -> bool:
        """Whether the service ends, so that nothing follows."""
        return self._broker.closed

    def events(self, patience: float) -> Iterator[Event]:
        """What is new; waits at most `patience` seconds for it. A gap stands where something was missed."""
        gap, entries, following = self._broker.since(self.place, patience)
        if gap is not None:
            yield gap
            self.place = gap.id + 1
        for entry in entries:
            yield from entry.events(self.place, self.wanted)
        self.place = following

    def close(self) -> None:
        """Watch no longer."""
        self._broker.leave(self)


def _value_event(cell: Cell, value: Value | None, shift: float) -> dict[str, Any]:
    """A value event; a forgotten value has neither text nor outcome."""
    data_name, node_name = cell
    text, outcome, ran = (value.text, value.outcome.value, value.ran) if value else (None, None, None)
    time = None if ran is None else ran + shift
    return {"data_name": data_name, "node_name": node_name, "data_value": text, "outcome": outcome, "time": time}


def _happenings(table: str, key: Key, commit: Commit) -> Iterator[_Happening]:
    tell = _TELL.get(table)
    if tell is not None:
        yield from tell(key, commit.before, commit.after)


def _producer(key: Key, _before: Configuration, after: Configuration) -> Iterator[_Happening]:
    producer: Producer | None = after.producers.get(key[0])
    detail = {"change": "put", "version": producer.version} if producer else {"change": "deleted"}
    yield "producer", {"data_name": key[0], **detail}


def _slot(key: Key, _before: Configuration, after: Configuration) -> Iterator[_Happening]:
    slot_request: SlotRequest | None = after.slots.get(key[0], {}).get(key[1])
    detail = (
        {"change": "put", "running": slot_request.running, "interval": slot_request.interval}
        if slot_request
        else {"change": "deleted"}
    )
    yield "slot", {"node_name": key[0], "data_name": key[1], **detail}


def _task(key: Key, before: Configuration, after: Configuration) -> Iterator[_Happening]:
    """A task that is new, changed or removed; what it is asked to run is not told."""
    stored = after.tasks.get(key[0]) or before.tasks.get(key[0])
    if stored is None:  # made and removed in one commit
        return
    task, change = stored.task, "put" if key[0] in after.tasks else "deleted"
    said = {name: getattr(task, name) for name in _SAID_OF_TASKS}
    yield "task", {"task_id": task.task_id, "change": change, "state": task.state.value, **said}


_SAID_OF_TASKS = ("owner", "name", "reason", "stop_asked", "node_name", "attempt", "exit_code")

# Every report changes a node's row; what of it is worth telling, its state, is published by the watchdog.
_TELL: dict[str, Callable[[Key, Configuration, Configuration], Iterator[_Happening]]] = {
    "producers": _producer,
    "slots": _slot,
    "tasks": _task,
}
