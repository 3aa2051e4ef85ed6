"""Who may keep a connection, and for how long a body may hold a thread: a thread that looks, and cuts what is too much.

Requests name only the address that they come from, so an address is what places are given to. What tells the
connections of one address apart is what the kernel knows: when data last went and came.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Sequence

from infosvc.access.authenticator import KNOWN
from infosvc.access.body_limit import Body, BodyLimit
from infosvc.access.csrf import Environ
from infosvc.access.proxies import peer_of
from infosvc.http.sockets import EXACT_SECONDS, Connection, count_open, cut, look, most_connections

_log = logging.getLogger(__name__)

TICK_SECONDS = 0.5
COUNT_SECONDS = 2.0  # between two looks at who has how many
SHARE_OF_ONE = 8  # one address without a token may have one of so many connections
SHARE_FREE = 8  # one of so many stays free for new callers
NEW_SECONDS = 2.0  # in which a caller of a known address may show its token, for after a restart all come at once
IDLE_SECONDS = 6.0  # agents say something every 2.5 s, and watchers are told something every 5 s
KNOWN_SECONDS = 60.0
CONFIRM_SECONDS = 0.3
SPARED_SECONDS = 3.0  # how long a late body is, because another call of its address could be taken for it
CONTINUE_SHARE = 0.2  # of a body's time, in which its caller may have been told to go on

Running = dict[int, tuple[str, float]]


class Connections:
    """Watches the connections to one port until `close`: at most so many, and of strangers fewer.

    `running` are the calls that are answered now, by thread: from which address, and since when (monotonic).
    """

    def __init__(self, port: int, bodies: Sequence[BodyLimit], running: Running) -> None:
        self.most = most_connections()
        self._most_of_one = self.most // SHARE_OF_ONE
        self._port = port
        self._bodies = bodies
        self._running = running
        self._known: set[str] = set()  # addresses that showed a good token lately
        self._known_before: set[str] = set()
        self._known_since = 0.0
        self._crowded: Collection[str] = ()
        self._count_at = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="connections", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def close(self) -> None:
        """Watch no more."""
        self._ended.set()
        self._thread.join()

    def is_kept(self, environ: Environ) -> bool:
        """Whether a caller may go on with its connection after the answer: not strangers of a crowded address."""
        address = peer_of(environ)
        if KNOWN in environ:
            self._known.add(address)
            return True
        return address not in self._crowded

    def _run(self) -> None:
        while not self._ended.wait(TICK_SECONDS):
            try:
                self._end_slow_bodies()
                if time.monotonic() >= self._count_at or self._excess(count_open()) > 0:
                    self._count_at = time.monotonic() + COUNT_SECONDS
                    self._make_room()
            except Exception:  # the next time may go better
                _log.exception("the connections could not be looked at")

    def _end_slow_bodies(self) -> None:
        """Cut the connections on which late bodies should come: those to which nothing went since the bodies began.

        Nothing goes either to a connection whose call is being answered, so each is looked at twice.
        """
        late = self._late_bodies()
        suspects = [one for one in look(self._port) if _is_suspect(one, late[one.peer[0]])] if late else []
        for body in (body for bodies in late.values() for body in bodies):
            body.tries += 1
        if suspects and not self._ended.wait(CONFIRM_SECONDS):
            for one in suspects:
                cut(one, self._port)

    def _late_bodies(self) -> dict[str, list[Body]]:
        """By address; without those for which a call of the address could be mistaken that is answered slowly."""
        late: dict[str, list[Body]] = defaultdict(list)
        bodies = [body for limit in self._bodies for body in limit.overdue()]
        if bodies:
            now = time.monotonic()
            reading = set().union(*(limit.reading() for limit in self._bodies))
            slow = [call for call in self._running.copy().items() if call[0] not in reading]
            spared = {address for _, (address, begun) in slow if now - begun > CONFIRM_SECONDS}
            for body in bodies:
                if body.address not in spared or now - body.late_at > SPARED_SECONDS:
                    late[body.address].append(body)
        return late

    def _make_room(self) -> None:
        """Cut what strangers have too much of, and what is idle when few connections are left."""
        self._note_known()
        number = count_open()
        by_address: dict[str, list[Connection]] = defaultdict(list)
        if number > self._most_of_one:
            for one in look(self._port):
                by_address[one.peer[0]].append(one)
        self._crowded = {address for address, found in by_address.items() if len(found) > self._most_of_one}
        idle_since, new_since = time.monotonic() - IDLE_SECONDS, time.monotonic() - NEW_SECONDS
        strangers: list[Connection] = []
        others: list[Connection] = []
        doomed: list[Connection] = []
        for address, found in by_address.items():
            is_known = address in self._known or address in self._known_before
            loose = [one for one in found if not one.is_answered or one.used_at < idle_since] if is_known else found
            loose.sort(key=_used_at)
            too_many = max(0, len(loose) - self._most_of_one)
            if is_known:
                too_many = min(too_many, sum(one.used_at < new_since for one in loose))
            doomed += loose[:too_many]
            (others if is_known else strangers).extend(loose[too_many:])
        excess = max(0, self._excess(number) - len(doomed))
        in_turn = sorted(strangers, key=_used_at) + sorted(others, key=_used_at)
        for one in doomed + in_turn[:excess]:
            cut(one, self._port)

    def _note_known(self) -> None:
        if time.monotonic() - self._known_since > KNOWN_SECONDS:
            self._known_since = time.monotonic()
            self._known_before, self._known = self._known, set()

    def _excess(self, number: int) -> int:
        """By how much so many connections are more than leave some free."""
        return number - (self.most - self.most // SHARE_FREE)


def _used_at(connection: Connection) -> float:
    return connection.used_at


def _is_suspect(connection: Connection, late: Sequence[Body]) -> bool:
    """Whether a late body may be what should come on a connection.

    First come those that were heard of since they were last told something. A caller that sent the head of a call right
    after its last answer looks as if nothing were awaited from it; then all that are quiet so long are cut.
    """
    if not late:
        return False
    begun = max(body.begun for body in late)
    begun += CONTINUE_SHARE * (time.monotonic() - begun)
    is_awaited = not connection.is_answered or connection.heard_at > connection.sent_at + EXACT_SECONDS
    return connection.sent_at < begun and (is_awaited or any(body.tries for body in late))
