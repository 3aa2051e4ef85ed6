"""Sends what waits, in a thread of its own: to each address in order, again and again for a day at most."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from infosvc.posting.addresses import shown
from infosvc.posting.sending import NotDelivered, send
from infosvc.settings import Settings
from infosvc.state.configuration import Delivery
from infosvc.state.transaction import Commit, Transaction
from infosvc.state.views import Latest
from infosvc.state.writer import Writer
from infosvc.wire.errors import InfoError

KEPT_SECONDS = 86_400.0
LONGEST_REST = 300.0
LONGEST_WAIT = 60.0  # until the next look, when nothing is due
AGAIN_SECONDS = 5.0  # when the database does not take that something has arrived

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rest:
    """How often an address failed in a row, until when it is left alone, and why."""

    failures: int = 0
    until: float = 0.0
    trouble: str = ""


class Postman:
    """One thread. An address that fails rests for 2, 4, 8 and so on up to 300 s, and its host comes last.

    So another one waits for at most one message that does not arrive, however many addresses a host has. A message
    whose removal could not be stored is sent again under the same id.
    """

    def __init__(self, latest: Latest, writer: Writer, settings: Settings) -> None:
        self._latest, self._writer, self._secret = latest, writer, settings.notify_secret
        self._now = latest.clock.monotonic
        self._rests: dict[str, Rest] = {}
        self._failures: dict[str, int] = {}  # in a row, by host
        self._news = threading.Event()
        self._ended = False
        writer.listeners.append(self._hear)
        self._thread = threading.Thread(target=self._run, name="postman", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Send no more; what waits is sent after the next start."""
        self._ended = True
        self._news.set()
        self._thread.join()

    def trouble(self, url: str) -> str:
        """Why the last message to an address did not arrive; empty if it did."""
        return self._rests.get(url, Rest()).trouble

    def step(self) -> float:
        """Send the first message of each address that does not rest, until one fails; seconds until more is due."""
        for url, (event_id, delivery) in self._firsts().items():
            rests = self._rests.get(url, Rest()).until > self._now()
            if self._ended or not (rests or self._deliver(event_id, delivery)):
                break
        left = self._firsts()
        self._rests = {url: rest for url, rest in self._rests.items() if url in left}
        hosts = set(map(_host, left))
        self._failures = {host: number for host, number in self._failures.items() if host in hosts}
        return max(0.0, min([LONGEST_WAIT, *(self._rests.get(url, Rest()).until - self._now() for url in left)]))

    def _firsts(self) -> dict[str, tuple[str, Delivery]]:
        """By address, what is to be sent to it next: the oldest first, and those of hosts that fail last."""
        found: dict[str, tuple[str, Delivery]] = {}
        waiting = self._latest.configuration.deliveries.items()
        for event_id, delivery in sorted(waiting, key=lambda one: one[1].created_at):
            found.setdefault(delivery.url, (event_id, delivery))
        return dict(sorted(found.items(), key=lambda one: self._failures.get(_host(one[0]), 0)))

    def _deliver(self, event_id: str, delivery: Delivery) -> bool:
        """Whether it arrived."""
        try:
            send(delivery.url, event_id, delivery.body, self._secret)
        except NotDelivered as error:
            before = self._rests.get(delivery.url, Rest())
            rest = min(LONGEST_REST, 2.0 ** min(before.failures + 1, 20))
            self._rests[delivery.url] = Rest(before.failures + 1, self._now() + rest, str(error))
            if not before.failures:
                _log.warning("messages to %s wait: %s", shown(delivery.url), error)
            self._failures[_host(delivery.url)] = self._failures.get(_host(delivery.url), 0) + 1
            self._give_up(delivery.url, str(error))
            return False
        self._rests.pop(delivery.url, None)
        self._failures.pop(_host(delivery.url), None)
        self._remove([event_id], delivery.url)
        return True

    def _give_up(self, url: str, why: str) -> None:
        """Keep none of the messages to an address that have waited for a day."""
        oldest = self._latest.clock.wall() - KEPT_SECONDS
        waiting = self._latest.configuration.deliveries.items()
        old = {event_id: one for event_id, one in waiting if one.url == url and one.created_at < oldest}
        for delivery in old.values():
            _log.error("a message to %s is given up after a day: %s: %s", shown(url), why, delivery.body)
        if old:
            self._remove(old, url)

    def _remove(self, event_ids: Collection[str], url: str) -> None:
        def remove(transaction: Transaction) -> None:
            for event_id in event_ids:
                transaction.put("deliveries", (event_id,), None)

        try:
            self._writer.write(remove)
        except InfoError as error:
            _log.warning("a message that was sent is still kept, and will be sent again: %s", error)
            rest = self._rests.get(url, Rest())
            self._rests[url] = replace(rest, until=max(rest.until, self._now() + AGAIN_SECONDS))

    def _hear(self, commit: Commit) -> None:
        if any(table == "deliveries" for table, _ in commit.changed):
            self._news.set()

    def _run(self) -> None:
        while not self._ended:
            self._news.clear()
            try:
                wait = self.step()
            except Exception:  # the next step may go better
                _log.exception("the postman failed at a step")
                wait = AGAIN_SECONDS
            self._news.wait(wait)


def _host(url: str) -> str:
    return urlsplit(url).netloc
