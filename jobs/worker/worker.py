"""A container's work: leases from the application master, spread over processes, and committed when they are whole."""

from __future__ import annotations

import itertools
import sys
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from jobs.errors import JobError
from jobs.images.rows import Rows, stream
from jobs.itemwork.messages import Group, Item, Task
from jobs.own_age import own_age
from jobs.worker.child import Chunk, Done
from jobs.worker.children import Children, Died
from jobs.worker.held import Held
from jobs.worker.master import Away, Master

HEARTBEAT_SECONDS = 1.0
PATIENCE_SECONDS = 1.0
"""How long a worker without anything to do waits for the answer to its request for work."""
SHORTEST_WAIT, LONGEST_WAIT = 0.01, 1.0
AWAY_WAIT = 0.1
LEASES = 2
"""Held at once: one that is computed, and one that is queued."""
MOST_DEATHS = 12
"""Processes that die one after the other without a single image done: then it is not an image that kills them.

Those that die of suspects do not count: of them it is expected.
"""


@dataclass(frozen=True)
class _Piece:
    """What a chunk in a process is part of."""

    lease: str
    items: tuple[Item, ...]
    suspect: bool

    @property
    def names(self) -> list[str]:
        return [item.name for item in self.items]


@dataclass(frozen=True)
class _Death:
    """A process died of these items."""

    piece: _Piece
    reason: str


class Worker:
    """One container: `step` does what is to be done now and waits for what comes next.

    `begun` is what its application master is told of how this process began, by jobs.itemwork.phases.Begun's names.
    """

    def __init__(
        self, children: Children, master: Master, rows: Rows, batch: int, begun: Mapping[str, float] | None = None
    ) -> None:
        self._children = children
        self._master = master
        self._rows = rows
        self._batch = batch
        self._held: dict[str, Held] = {}
        self._numbers = itertools.count(1)
        self._pieces: dict[int, _Piece] = {}
        self._deaths: deque[_Death] = deque()
        self._announced: _Piece | None = None
        self._heartbeat_at = self._take_at = 0.0
        self._died_in_a_row = 0
        self._begun = dict(begun or {})

    def run(self) -> None:
        """Until everything is done, or this worker is not wanted any more (NotWanted), or cannot go on (JobError)."""
        while self.step(time.monotonic()):
            pass

    def step(self, now: float) -> bool:
        """Whether there may be more to do; waits about two seconds at most."""
        try:
            more = not self._master.is_reached(now) or self._speak(now)
            self._dispatch(now)
        except Away:
            more = True
        if more:
            for event in self._children.wait(self._patience()):
                self._see(event)
        return more

    def _speak(self, now: float) -> bool:
        """Say what happened; whether the job goes on.

        It can break off anywhere; deaths come first, because a lease is complete only when they are told.
        """
        while self._deaths:
            self._tell_death(self._deaths[0], now)
            self._deaths.popleft()
        if self._announced and not self._running(self._announced):
            self._master.call("/working", {"lease": self._announced.lease, "group": []}, now)
            self._announced = None
        for held in [held for held in self._held.values() if held.complete]:
            self._commit(held, now)
        if now >= self._heartbeat_at:
            self._keep(set(self._master.call("/heartbeat", self._tell_begun(), now)["holding"]))
            self._begun = {}
            self._heartbeat_at = now + HEARTBEAT_SECONDS
        while len(self._held) < LEASES and now >= self._take_at:
            if not self._take(now):
                return False
        return True

    def _tell_begun(self) -> dict[str, float]:
        """What the application master has not heard yet of how this process began."""
        return {**self._begun, "age": own_age()} if self._begun else {}

    def _take(self, now: float) -> bool:
        """Ask for a lease; False when all is done."""
        patience = 0.0 if self._held or self._children.busy else PATIENCE_SECONDS
        answer = self._master.call("/take", {"holding": list(self._held), "patience": patience}, now)
        if answer.get("done"):
            return False
        if "lease" not in answer:
            self._take_at = now + max(float(answer["wait"]), SHORTEST_WAIT)
            return True
        task = Task.from_json(answer["lease"])
        if task.lease in self._held:
            self._take_at = now + LONGEST_WAIT
            return True
        held = Held.of(task, self._batch, self._children.size)
        if task.convicted:
            held.messages.append(self._rows.failures(task.convicted))
        if held.complete:
            self._commit(held, now)
        else:
            self._held[task.lease] = held
        return True

    def _commit(self, held: Held, now: float) -> None:
        """Whatever the answer is, there is nothing more to do for these images here."""
        answer = self._master.commit(
            held.lease, held.seconds, held.bytes_read, stream(self._rows.schema, held.messages), now
        )
        if answer["answer"] not in ("accepted", "repeated"):
            print(f"lease {held.lease} was not taken: {answer.get('why', answer['answer'])}", flush=True)
        self._held.pop(held.lease, None)
        if not self._held:
            self._take_at = now  # whatever it was told to wait for: now it has nothing to do

    def _keep(self, counting: set[str]) -> None:
        for lease in set(self._held) - counting:
            print(f"lease {lease} does not count any more", flush=True)
            del self._held[lease]

    def _tell_death(self, death: _Death, now: float) -> None:
        piece = death.piece
        body = {"lease": piece.lease, "group": piece.names, "reason": death.reason}
        answer = self._master.call("/died", body, now)
        if self._announced == piece:
            self._announced = None
        if held := self._held.get(piece.lease):
            held.add([Group.from_json(group) for group in answer["groups"]], self._batch, self._children.size)
            if answer["convicted"]:
                held.messages.append(self._rows.failures(answer["convicted"]))

    def _dispatch(self, now: float) -> None:
        """Give the processes what they can take; Away when a suspect cannot be announced."""
        while (child := self._children.free()) and (piece := self._next(now)):
            number = next(self._numbers)
            self._pieces[number] = piece
            self._held[piece.lease].running += 1
            child.give(Chunk(number, piece.items), time.monotonic())

    def _next(self, now: float) -> _Piece | None:
        """In the order of the leases, urgent ones first.

        A suspect waits until nothing else runs, and nothing else begins until then.
        """
        if self._announced:
            return None
        for held in sorted(self._held.values(), key=lambda one: not one.urgent):
            if held.waiting:
                return _Piece(held.lease, held.waiting.popleft(), suspect=False)
            if held.suspects:
                return None if self._children.busy else self._announce(held, now)
        return None

    def _announce(self, held: Held, now: float) -> _Piece | None:
        """Say that it begins now with what may kill more than a process."""
        if not self._master.is_reached(now):
            return None
        piece = _Piece(held.lease, held.suspects[0], suspect=True)
        self._master.call("/working", {"lease": piece.lease, "group": piece.names}, now)
        held.suspects.popleft()
        self._announced = piece
        return piece

    def _running(self, piece: _Piece) -> bool:
        return piece in self._pieces.values() or any(death.piece == piece for death in self._deaths)

    def _see(self, event: Done | Died) -> None:
        if isinstance(event, Done):
            self._died_in_a_row = 0
            if held := self._held.get(self._pieces.pop(event.number).lease):
                held.finish(event)
            return
        print(f"a process is replaced: {event.reason}", file=sys.stderr, flush=True)
        dead = self._pieces.pop(event.chunk.number) if event.chunk else None
        self._died_in_a_row += not (dead and dead.suspect)
        if self._died_in_a_row >= MOST_DEATHS:
            raise JobError(f"{MOST_DEATHS} processes died one after the other, the last one so: {event.reason}")
        for chunk in reversed(event.left):
            self._give_back(self._pieces.pop(chunk.number))
        if dead:
            self._bury(dead, event.reason)

    def _give_back(self, piece: _Piece) -> None:
        """It waits again: its process died of something else."""
        if held := self._held.get(piece.lease):
            held.running -= 1
            (held.suspects if piece.suspect else held.waiting).appendleft(piece.items)

    def _bury(self, piece: _Piece, reason: str) -> None:
        if held := self._held.get(piece.lease):
            held.running -= 1
            self._deaths.append(_Death(piece, reason))

    def _patience(self) -> float:
        """Seconds until something is due that no process tells."""
        if self._master.away or self._deaths:
            return AWAY_WAIT
        now = time.monotonic()
        due = min(self._heartbeat_at, self._take_at if len(self._held) < LEASES else now + LONGEST_WAIT)
        return min(max(due - now, 0.0), LONGEST_WAIT)
