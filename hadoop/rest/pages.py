"""The one way to open a page of a daemon: bounded in time and in bytes, and every failure is a HadoopError.

A proxy from the environment is never used: it must not stand between a program and its own cluster. Certificates are
checked against the authorities that this system trusts, or against those in the file that SSL_CERT_FILE names.
"""

from __future__ import annotations

import json
import ssl
import time
import weakref
from collections import deque
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

from hadoop.errors import HadoopError
from infosvc.wire.bounded_answer import AnswerTooLarge, answer_by, new_connection, read_whole

MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_DENIED = (401, 403)


class NotKnown(HadoopError):
    """The daemon answered, and does not know (any more) what was asked for."""


class NoAnswer(HadoopError):
    """A daemon cannot be reached, hangs up, or takes too long."""

    def __init__(self, title: str, address: str, reason: object) -> None:
        super().__init__(
            f"the {title} at {address} does not answer ({reason})", "`nodewise cluster status` tells what is up"
        )


class TooLarge(HadoopError):
    """A page is larger than the reader allows."""


@dataclass(frozen=True)
class Limits:
    """Seconds to connect, seconds until the next bytes, seconds for the whole page, and the size of a page in bytes."""

    connect: float = 5.0
    silence: float = 5.0
    seconds: float = 60.0
    size_bytes: int = 64 * 1024 * 1024


STANDARD = Limits()


@dataclass(frozen=True)
class Answer:
    """What a daemon answers to one request."""

    status: int
    headers: Message
    content: bytes


class Pages:
    """The pages of the daemon at `address` (scheme://host:port); `title` names its kind for people, as in "NameNode".

    Up to `kept` connections stay open for the next pages. Any number of threads may read.
    """

    def __init__(self, title: str, address: str, limits: Limits = STANDARD, kept: int = 0) -> None:
        self.title = title
        self.address = address
        self.limits = limits
        self._kept = kept
        self._idle: deque[HTTPConnection] = deque()
        weakref.finalize(self, _close_all, self._idle)

    def ask(self, path: str, limits: Limits | None = None) -> Answer:
        """Get a page, whatever its status; redirects are followed. NoAnswer, TooLarge."""
        limits = limits or self.limits
        deadline = time.monotonic() + limits.seconds
        url = f"{self.address}{path}"
        try:
            for _ in range(MOST_REDIRECTS):
                answer = self._get(url, limits, deadline)
                if answer.status not in _REDIRECTS or not answer.headers["Location"]:
                    return answer
                url = urljoin(url, answer.headers["Location"])
            raise HTTPException("it redirects in a circle")
        except (OSError, HTTPException, ValueError) as error:
            raise NoAnswer(self.title, self.address, error or type(error).__name__) from error

    def read(self, path: str, what: str, limits: Limits | None = None) -> Answer:
        """Get a page that shows `what`; NotKnown when there is none, HadoopError when the daemon cannot answer."""
        answer = self.ask(path, limits)
        if answer.status in _DENIED:
            raise HadoopError(
                (f"the {self.title} at {self.address} does not show {what} to this user (status {answer.status})"),
                remedy="ask as a user who may see it",
            )
        if answer.status >= 500:
            raise HadoopError(
                f"the {self.title} at {self.address} cannot answer now (status {answer.status})",
                remedy="`nodewise cluster status` tells what is up",
            )
        if answer.status >= 300:
            raise NotKnown(f"{what} is not known at {self.address}", remedy="`nodewise job list` shows jobs")
        return answer

    def read_json(self, path: str, what: str, limits: Limits | None = None) -> Any:
        """Get a page of JSON; HadoopError also when another program answers at this address."""
        return self.parse(self.read(path, what, limits))

    def parse(self, answer: Answer) -> Any:
        """Read the JSON in an answer; HadoopError when there is none."""
        try:
            return json.loads(answer.content)
        except ValueError as error:
            raise self.foreign_error() from error

    def foreign_error(self) -> HadoopError:
        """The error of an address where something else than this daemon answers."""
        return HadoopError(
            f"{self.address} answers, but not as a {self.title}", remedy="correct its address in Hadoop's site files"
        )

    def _get(self, url: str, limits: Limits, deadline: float) -> Answer:
        parts = urlsplit(url)
        own = f"{parts.scheme}://{parts.netloc}" == self.address
        if own and (kept := self._take()):
            try:
                return self._exchange(kept, parts, own, limits, deadline)
            except (ConnectionError, ssl.SSLError):
                pass  # the daemon has closed it meanwhile
        return self._exchange(_connection(parts, limits), parts, own, limits, deadline)

    def _take(self) -> HTTPConnection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _exchange(
        self, connection: HTTPConnection, parts: SplitResult, own: bool, limits: Limits, deadline: float
    ) -> Answer:
        """Send one request on a connection, and keep that for the next one or close it."""
        keep = False
        try:
            connection.request("GET", f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}")
            with answer_by(connection, deadline, limits.silence) as response:
                content = _read_body(response, limits.size_bytes, parts)
                keep = own and not response.will_close and len(self._idle) < self._kept
                return Answer(response.status, response.headers, content)
        finally:
            if keep:
                self._idle.append(connection)
            else:
                connection.close()


def _connection(parts: SplitResult, limits: Limits) -> HTTPConnection:
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{parts.geturl()!r} is not a web address")
    tls = ssl.create_default_context() if parts.scheme == "https" else None
    return new_connection(parts.hostname, parts.port, limits.connect, tls)


def _read_body(response: HTTPResponse, most: int, parts: SplitResult) -> bytes:
    try:
        return read_whole(response, most)
    except AnswerTooLarge:
        raise TooLarge(
            f"{parts.scheme}://{parts.netloc}{parts.path} is more than {most / 1e6:,.0f} MB, too much to be read"
        ) from None


def _close_all(connections: deque[HTTPConnection]) -> None:
    while connections:
        connections.pop().close()
