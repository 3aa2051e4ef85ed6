"""One thread that writes: it stores all changes that wait in one commit, then lets their callers go on."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from infosvc.errors import InfoError, NotReady
from infosvc.latest import Draft, Latest, Picture
from infosvc.settings import Settings
from infosvc.store import Store

T = TypeVar("T")
_Waiting = tuple[Callable[[Draft], Any], "Future[Any]"]

_log = logging.getLogger(__name__)


class Writer:
    """Serialises all changes; `write` returns when the change is stored, or raises why it was not.

    A change is a function of a Draft. It raises an InfoError before it touches the draft, or not at all.
    `told(before, after)` is called with the two pictures after each commit.
    """

    def __init__(
        self, latest: Latest, store: Store, settings: Settings, told: Callable[[Picture, Picture], None]
    ) -> None:
        self._latest = latest
        self._store = store
        self._settings = settings
        self._told = told
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._closed = False
        self._commit_since: float | None = None
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    def write(self, change: Callable[[Draft], T]) -> T:
        """Do one change and wait until it is stored; NotReady when the database does not take it in time."""
        since = self._commit_since
        if self._closed or (since is not None and self._latest.clock.monotonic() - since > self._settings.patience):
            # Refused at once, so that callers who wait do not use up the threads that readers need.
            raise NotReady(f"the database {self._store.name} takes no writes now: try again later")
        answer: Future[T] = Future()
        self._queue.put((change, answer))
        try:
            return answer.result(timeout=self._settings.patience)
        except TimeoutError:
            answer.cancel()
            raise NotReady(
                f"the database {self._store.name} did not take the write within {self._settings.patience:g} s: "
                "it may still be stored; read it back, or try again"
            ) from None

    def close(self) -> None:
        """Store what waits, then end."""
        self._closed = True
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        ended = False
        while not ended:
            batch = self._take()
            ended = None in batch
            waiting = [item for item in batch if item is not None and item[1].set_running_or_notify_cancel()]
            if waiting:
                self._commit(waiting)

    def _take(self) -> list[_Waiting | None]:
        batch = [self._queue.get()]
        while len(batch) < self._settings.batch and batch[-1] is not None:
            try:
                batch.append(self._queue.get_nowait())
            except queue.Empty:
                break
        return batch

    def _commit(self, batch: list[_Waiting]) -> None:
        before = self._latest.picture
        draft = Draft(before)
        self._commit_since = self._latest.clock.monotonic()
        done = [(answer, result) for change, answer in batch for result in _try(change, draft, answer)]
        try:
            self._store.save(draft)
        except Exception as error:
            _fail([answer for answer, _ in done], error)
            return
        finally:
            self._commit_since = None
        self._latest.picture = draft.picture
        for answer, result in done:
            answer.set_result(result)
        try:
            self._told(before, draft.picture)
        except Exception:  # the thread that writes must go on whatever the notices run into
            _log.exception("the agents could not be told of a change; they ask after their next report")


def _try(change: Callable[[Draft], Any], draft: Draft, answer: Future[Any]) -> list[Any]:
    """The result of one change in a list, or none when it was refused and its caller has been told."""
    try:
        return [change(draft)]
    except Exception as error:
        _fail([answer], error)
        return []


def _fail(answers: list[Future[Any]], error: Exception) -> None:
    if not isinstance(error, InfoError):
        _log.error("a change could not be made", exc_info=error)
        error = NotReady("the service could not store this because of a fault of its own; its log says more")
    for answer in answers:
        answer.set_exception(error)
