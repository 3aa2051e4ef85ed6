"""How the client's calls travel: connections that are kept, https, and patience with a service that is away for a
moment. Standard library only, so it travels to nodes and containers."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import random
import ssl
import time
import weakref
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import urlsplit

from infosvc.wire.bounded_answer import new_connection
from infosvc.wire.errors import BY_STATUS, InfoError, InvalidInput, NotReady, Revoked, Unauthorized, Unreachable

PASSING = frozenset({429, 503})  # refusals that may be gone when the call is made again
PORTS = {"http": 80, "https": 443}
ACTIVE = "Nodewise-Active"
"""The header of an answer of a service that only follows another one: where that is, which has to be asked."""
API = "/api/v1"  # below an address; who gives it with the address means the same service
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0
FROZEN_SECONDS = 4.0
"""How long each of several services is given for an answer at first: so long it takes another one to take over."""
_CHANCE = random.Random()  # noqa: S311 - no secret; and none of the numbers that a program draws from its own
os.register_at_fork(after_in_child=_CHANCE.seed)

_FAILURES = (OSError, ValueError, http.client.HTTPException)


@dataclass(frozen=True)
class Call:
    """One request; a `repeatable` one has the same effect when it reaches the service twice. A file is sent once."""

    method: str
    path: str
    body: bytes | BinaryIO | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = True


@dataclass(frozen=True)
class Answer:
    """What came back; `repeated` when the request may have reached the service before."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes
    repeated: bool = False


class Place(NamedTuple):
    """Where a service listens."""

    scheme: str
    host: str
    port: int
    path: str


def place_of(url: str) -> Place:
    """Where a URL leads; Unreachable when it is not one that can be called."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        if parts.scheme in PORTS and host and host.encode("idna"):
            return Place(parts.scheme, host, port or PORTS[parts.scheme], parts.path)
    except ValueError:  # also a UnicodeError: an impossible host name
        pass
    raise Unreachable(
        f"{url!r} is not an address of an information service",
        "url",
        remedy="use http://HOST:PORT or https://HOST:PORT, or several of them with commas between",
    )


class _Try(NamedTuple):
    """One of the times that a call is made, at one of the places: `attempt` 0 is the first.

    `reached` says that the service may know it already.
    """

    call: Call
    at: int
    attempt: int
    reached: bool
    give_up: float


class Connections:
    """Connections to one service: each serves one call at a time and is kept for the next. Any thread may use them.

    `url` may name several addresses with commas between them: those of services of one database, of which one is
    active. Calls go to the one that answered last, and to the next when it is away or only follows another one.
    `timeout` is the patience in seconds for each answer; no call is repeated later than that after its start.
    """

    def __init__(self, url: str, timeout: float, ca_file: str | Path | None = None) -> None:
        self.url = ",".join(one.strip().rstrip("/").removesuffix(API) for one in url.split(","))
        self._places = [place_of(one) for one in self.url.split(",")]
        self._at = 0
        self.base = self._places[0].path
        if any(place.path != self.base for place in self._places):
            raise Unreachable(
                f"{url!r} names services below different paths", "url", remedy="give all of them below the same one"
            )
        self._tls = _trusting(ca_file) if any(place.scheme == "https" for place in self._places) else None
        self.timeout = timeout
        self._idle: deque[http.client.HTTPConnection] = deque()
        self._process = os.getpid()
        # The sockets are closed whenever this object goes, so that nobody need remember to.
        weakref.finalize(self, _close_all, self._idle)

    def close(self) -> None:
        """Let go of the connections that are kept."""
        _close_all(self._idle)

    def ask(self, call: Call, retries: int) -> Answer:
        """The answer to a call, whatever its status; repeated at most `retries` times while the service is away.

        With several addresses it is repeated as long as there is time, unless `retries` is 0: then each is asked once.
        Unreachable when there is no answer.
        """
        give_up = time.monotonic() + self.timeout
        reached = False  # the service, by what went before
        for attempt in itertools.count():
            tried = _Try(call, self._at, attempt, reached, give_up)
            try:
                found: Answer | Unreachable = self._exchange(tried)
            except Unreachable as error:
                if error.field:
                    raise
                found = error
            if isinstance(found, Answer) and found.status not in PASSING:
                return found
            if not self._may_try_again(tried, found, retries):
                break
            reached = reached or not _is_undone(found)
        if isinstance(found, Unreachable):
            raise found
        return found

    def open(self, call: Call, silence: float) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """A connection of its own for what is long, an answer or a file, which may be silent for `silence` seconds.

        Whoever opens it closes both. Unreachable when there is no answer.
        """
        for left in reversed(range(len(self._places))):
            at = self._at
            connection = self._connect(self._places[at], silence)
            try:
                # Who refuses a file need not read it: why is said in an answer, although no more can be sent.
                with suppress(*((BrokenPipeError, ConnectionResetError) if hasattr(call.body, "read") else ())):
                    connection.request(call.method, call.path, call.body, dict(call.headers))
                answer = connection.getresponse()
            except _FAILURES as error:
                connection.close()
                self._turn(at)
                if not (left and isinstance(error, ConnectionRefusedError)):
                    raise self.unreachable(error) from error
                continue
            if ACTIVE not in answer.headers:
                break
            self._turn(at)
            if not left or hasattr(call.body, "read"):
                break
            connection.close()
        return connection, answer

    def unreachable(self, error: Exception) -> Unreachable:
        """What a failure of the transport means."""
        if isinstance(error, ssl.SSLCertVerificationError):
            return Unreachable(
                f"the certificate of {self.url} is not trusted ({error.verify_message})",
                "ca_file",
                remedy="name the file of its authority with --ca-file (NODEWISE_CA_FILE)",
            )
        if isinstance(error, ssl.SSLError) and error.reason == "WRONG_VERSION_NUMBER":
            return Unreachable(f"{self.url} does not speak https", "url", remedy="call it with http://")
        if isinstance(error, http.client.BadStatusLine) and not isinstance(error, ConnectionError):
            return Unreachable(
                f"what answers at {self.url} is no information service",
                "url",
                remedy="name the address that `nodewise serve` prints with --url",
            )
        return Unreachable(
            f"the information service at {self.url} does not answer ({error})",
            remedy="start it with `nodewise serve`, or name another one with --url",
        )

    def _may_try_again(self, tried: _Try, found: Answer | Unreachable, retries: int) -> bool:
        """Whether a call is to be made again that was not answered, or refused for now; after a pause, if need be."""
        several = len(self._places) > 1
        is_elsewhere = isinstance(found, Unreachable) or ACTIVE in found.headers
        if is_elsewhere:
            self._turn(tried.at)
        if not (tried.call.repeatable or (several and _is_undone(found))):
            return False
        attempts = tried.attempt + 1
        if is_elsewhere and attempts % len(self._places):
            return time.monotonic() < tried.give_up  # at once, since it is another service that is asked
        if attempts > retries and not (several and is_elsewhere and retries):
            return False
        asked = "" if isinstance(found, Unreachable) else found.headers.get("Retry-After", "")
        return _wait(attempts // len(self._places) - 1 if is_elsewhere else tried.attempt, asked, tried.give_up)

    def _turn(self, at: int) -> None:
        """Go on with the place behind `at`, unless another thread has done so."""
        if self._at == at:
            self._at = (at + 1) % len(self._places)

    def _seconds(self, tried: _Try) -> float:
        """How long to wait for an answer: a service that stands still must leave time for the other one."""
        if len(self._places) == 1 or not tried.call.repeatable:
            return self.timeout
        if tried.attempt < len(self._places):
            return min(self.timeout / 2, FROZEN_SECONDS)
        return max(tried.give_up - time.monotonic(), FIRST_PAUSE_SECONDS)

    def _exchange(self, tried: _Try) -> Answer:
        place, seconds, reached = self._places[tried.at], self._seconds(tried), tried.reached
        kept = self._take(place) if tried.call.repeatable else None
        try:
            if kept is not None:
                try:
                    return self._talk(kept, tried.call, reached, seconds)
                except (ConnectionError, ssl.SSLEOFError):
                    reached = True  # the service had closed what was kept: a new connection tells more
            return self._talk(self._connect(place, seconds), tried.call, reached, seconds)
        except _FAILURES as error:
            raise self.unreachable(error) from error

    def _talk(self, connection: http.client.HTTPConnection, call: Call, repeated: bool, seconds: float) -> Answer:
        try:
            connection.timeout = seconds
            if connection.sock is not None:
                connection.sock.settimeout(seconds)
            connection.request(call.method, call.path, call.body, dict(call.headers))
            response = connection.getresponse()
            answer = Answer(response.status, response.headers, response.read(), repeated)
        except BaseException:
            connection.close()
            raise
        if connection.sock is not None:  # else the service wanted it closed
            self._idle.append(connection)
        return answer

    def _take(self, place: Place) -> http.client.HTTPConnection | None:
        """A connection to this place that is kept; those to another one are closed."""
        if self._process != os.getpid():  # a fork: what its parent still uses must not be used here
            self._process = os.getpid()
            _close_all(self._idle)
        with suppress(IndexError):
            while True:
                kept = self._idle.pop()
                if (kept.host, kept.port) == (place.host, place.port):
                    return kept
                kept.close()
        return None

    def _connect(self, place: Place, timeout: float) -> http.client.HTTPConnection:
        return new_connection(place.host, place.port, timeout, self._tls if place.scheme == "https" else None)


def error_from(status: int, body: bytes) -> InfoError:
    """The service's own error as an exception; anything that is not its error page becomes NotReady."""
    kind = BY_STATUS.get(status, NotReady)
    try:
        error = json.loads(body)["error"]
        if kind is Unauthorized and error.get("code") == Revoked.code:
            kind = Revoked
        return kind(str(error["message"]), error.get("field"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return kind(f"the information service answered {status} without saying why")


def encode_json(body: Any) -> bytes:
    """A body as JSON; InvalidInput when a number in it is infinite or NaN."""
    try:
        return json.dumps(body, allow_nan=False).encode()
    except ValueError as error:
        raise InvalidInput(
            "a number that is infinite or not a number cannot be sent", remedy="give a finite one"
        ) from error


def pause(attempt: int) -> float:
    """Seconds to wait after a failed attempt (0 is the first): at random, so that callers do not come all at once."""
    return _CHANCE.uniform(0, min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0**attempt))


def _is_undone(found: Answer | Unreachable) -> bool:
    """Whether nobody has begun to do what was asked: nobody listened, or the service only follows another one."""
    if isinstance(found, Unreachable):
        return isinstance(found.__cause__, ConnectionRefusedError)
    return ACTIVE in found.headers


def _wait(attempt: int, asked: str, give_up: float) -> bool:
    """Pause before the next attempt, at least as long as the service asks; False when that would be too late."""
    seconds = pause(attempt) + (float(asked) if asked.isdecimal() else 0.0)
    if time.monotonic() + seconds > give_up:
        return False
    time.sleep(seconds)
    return True


def _trusting(ca_file: str | Path | None) -> ssl.SSLContext:
    """Trusts the authorities in a file, or those of this machine when none is named."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise InvalidInput(
            f"the CA file {ca_file} cannot be used ({error})",
            "ca_file",
            remedy="name one with certificates in PEM form",
        ) from error


def _close_all(connections: deque[http.client.HTTPConnection]) -> None:
    while connections:
        connections.pop().close()
