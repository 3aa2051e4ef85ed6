"""What a run asks the information service for, and tells it, beside its own work."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from typing import Any

from hadoop.errors import HadoopError
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from jobs.application.coordinator import Attempt
from jobs.application.journal import Record
from jobs.aside import Aside
from jobs.division import speed_history
from jobs.kinds.train.registry.share_history import MOST_CHANGES, ShareHistory, from_body, to_body
from jobs.kinds.train.registry.speeds import first_values, learned
from jobs.kinds.train.registry.values import Values
from jobs.reports.texts import count_text
from learning.lead.leader import Member
from locality.training.explaining import ShareChange, find_node, known_reason

SHARES = "shares"
"""Records of the journal: changes of shares, with their reasons."""
FIRST_SECONDS = 5.0
"""How long a run waits for the values that give its first shares."""
SETTLE_SECONDS = 5.0
"""From a change until values are read, and so the least between two reads: collectors see what happened that late."""
WRITE_SECONDS = 60.0
"""Between two writes of the learned speeds."""
LAST_SECONDS = 5.0
"""How long a run that is done waits for its last reasons, and then for its speeds to be written."""

Work = Callable[[], Mapping[str, Mapping[str, Any]]]
"""Tells what nodes have done, as the report has it."""


class Registry:
    """Of one attempt; `nodes` are those of the run's containers, and grow with them.

    `judged_by` is what gives the first shares, "" for nothing.
    """

    def __init__(self, attempt: Attempt, speeds_name: str, nodes: Mapping[str, str]) -> None:
        self.judged_by = ""
        self._attempt = attempt
        self._speeds_name = speeds_name
        self._history = ShareHistory(nodes)
        for record in attempt.earlier:
            if record.kind == SHARES:
                for body in record.body["changes"]:
                    self._history.add(from_body(body))
        self.aside = Aside()
        self._is_last = threading.Event()
        self._values = Values(self._client, speeds_name)
        self._has_looked = False
        self._waiting: deque[tuple[ShareChange, ShareChange | None]] = deque()
        self._explaining = self._writing = _done()
        self._written_at = attempt.clock()
        self._said: list[tuple[float, str]] = []

    def first_values(self, nodes: Collection[str], cold_start: str | None) -> tuple[str, Mapping[str, float]]:
        """What nodes are judged by before their first step, and the values; none where the service gives none."""
        asked = self.aside.do(lambda: self.read_values(nodes, cold_start))
        try:
            return asked.result(FIRST_SECONDS)
        except (InfoError, NotInTime) as error:
            print(f"the first shares are alike, as the service gives no values: {error!r}", flush=True)
            return "", {}

    def read_values(self, nodes: Collection[str], cold_start: str | None) -> tuple[str, Mapping[str, float]]:
        """The same for who can wait; InfoError where the service gives none."""
        return first_values(self._client, self._speeds_name, cold_start, nodes)

    def look(self, members: Collection[str], told: Mapping[str, Member], work: Work) -> None:
        """Note what the members of the newest generation tell; now and then, write what was learned."""
        now = self._attempt.clock()
        found, last = self._history.find_change(members, told, now), self._history.last
        if found and (last is None or found.shares != last.shares):
            self._history.measure(told)
            self._history.add(found)
            self._history.mark(told)
            self._waiting.append((found, last))
        if self._explaining.done() and (self._waiting or (found and not self._has_looked)):
            self._has_looked = True
            self._explaining = self.aside.do(self._explain)
        if self._writing.done() and now - self._written_at >= WRITE_SECONDS:
            self._written_at = now
            self._write(learned(work()))

    def hurry(self) -> None:
        """Explain changes at once from now on, while the journal still takes them: no more values will follow."""
        self._is_last.set()

    def finish(self, told: Mapping[str, Member], work: Work) -> None:
        """Explain and write what there is, as far as that is possible in a few seconds."""
        self._history.measure(told)
        self.hurry()
        if self._waiting:
            self._explaining = self.aside.do(self._explain)
        _wait(self._explaining)
        self._write(learned(work()))
        if not _wait(self._writing):
            self._say(f"the speeds of this run may be lost: the service took more than {LAST_SECONDS:.0f} s")

    def report(self, most: int = MOST_CHANGES) -> dict[str, Any]:
        """How the shares changed, the newest changes."""
        return {"shares": self._history.report(most)}

    def news(self, most: int) -> list[tuple[float, str]]:
        """The last sentences, each with its second of the run."""
        return [*self._history.news(most), *self._said]

    @property
    def _client(self) -> InfoClient:
        return self._attempt.client

    def _explain(self) -> None:
        """The changes that wait, by one read of all values."""
        self._is_last.wait(SETTLE_SECONDS)
        changes = [self._waiting.popleft() for _ in range(len(self._waiting))]
        last = self._history.last
        self._values.read(last.shares if last else ())
        told = [self._history.explain(now, self._reason(before, now)) for now, before in changes]
        if not told:
            return
        try:
            self._attempt.journal.append(Record(SHARES, {"changes": [to_body(one) for one in told]}))
        except HadoopError as error:  # another attempt leads, or all is done: this one knows it still
            print(f"not in the journal: {count_text(len(told), 'changes')} of shares ({error})", flush=True)

    def _reason(self, before: ShareChange | None, now: ShareChange) -> str:
        if known := known_reason(before, now, self.judged_by):
            return known
        return self._values.explain(find_node(before.shares if before else {}, now.shares))

    def _write(self, speeds: Mapping[str, float]) -> None:
        def write() -> None:
            try:
                speed_history.write(self._client, self._speeds_name, speeds)
            except InfoError as error:
                self._say(f"the speeds of this run cannot be kept: {error}")

        self._writing = self.aside.do(write)

    def _say(self, said: str) -> None:
        """Once: what goes wrong goes wrong again."""
        if not self._said:
            self._said.append((self._attempt.clock(), said))


def _done() -> Future[None]:
    """Of what nobody has asked for."""
    future: Future[None] = Future()
    future.set_result(None)
    return future


def _wait(future: Future[None]) -> bool:
    """Whether it is done in time, well or not."""
    try:
        future.exception(LAST_SECONDS)
    except NotInTime:
        return False
    return True
