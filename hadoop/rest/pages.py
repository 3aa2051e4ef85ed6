"""The one way to open a page of a daemon: bounded in time and in bytes, and every failure is a HadoopError.

A proxy from the environment is never used: it must not stand between a program and its own cluster. Certificates are
checked against the authorities that this system trusts, or against those in the file that SSL_CERT_FILE names. Where
Hadoop has Kerberos, a daemon is shown a ticket, and of several masters the active one is asked.
"""

from __future__ import annotations

import json
import time
from http.client import HTTPException, responses
from typing import Any
from urllib.parse import quote, urljoin

from hadoop.errors import HadoopError, NoTicket
from hadoop.rest.connections import Answer as Answer
from hadoop.rest.connections import Body, Connections, Trusts, Unreached, asks_for_ticket
from hadoop.rest.connections import Limits as Limits
from hadoop.rest.masters import ACTIVE, Addresses, as_tuple, in_order, read_role, remember, stands_by
from infosvc.wire.bounded_answer import AnswerTooLarge

MOST_REDIRECTS = 5
AGAIN_SECONDS = 1.0
"""Between two rounds of questions to masters of which none is active."""
_REDIRECTS = (301, 302, 303, 307, 308)
_DENIED = (401, 403)
_HIDDEN = b"is not authorized to view"
"""Of a NodeManager to whom it does not show a log, with a status as if it had failed."""
IN_ADDRESSES = "%/?:@!$&'()*+,;=~"
"""What may stand in an address: a daemon writes out only what is ASCII."""


class NotKnown(HadoopError):
    """The daemon answered, and does not know (any more) what was asked for."""


class NoAnswer(HadoopError):
    """A daemon cannot be reached, hangs up, or takes too long; of several masters none is active."""

    def __init__(self, title: str, address: str, reason: object) -> None:
        super().__init__(
            f"the {title} at {address} does not answer ({reason})", "`nodewise cluster status` tells what is up"
        )
        self.address = address
        self.reason = str(reason)


class NotSent(NoAnswer):
    """There is no connection to a daemon, so it knows nothing of a request that has a body."""


class TooLarge(HadoopError):
    """A page is larger than the reader allows."""


STANDARD = Limits()


class Pages:
    """The pages of the daemon at `address` (scheme://host:port); `title` names its kind for people, as in "NameNode".

    Of several addresses, which are those of all masters of a kind, the one that is active is asked. Up to `kept`
    connections to each stay open for the next pages. Any number of threads may read.

    Tickets are shown at these addresses only, whomever they lead to, unless `trusts` tells of others.
    """

    def __init__(
        self,
        title: str,
        address: Addresses,
        limits: Limits = STANDARD,
        kept: int = 0,
        trusts: Trusts | None = None,
    ) -> None:
        self.title = title
        self.addresses = as_tuple(address)
        self.limits = limits
        self._connections = Connections(self.addresses, kept, trusts)

    @property
    def address(self) -> str:
        """Of the daemon that is asked first: of several, that which answered last."""
        return in_order(self.addresses)[0]

    def of_active(self, path: str) -> Pages:
        """The pages of the active one of several, as the page at `path` tells of each; these pages of a single one.

        For what one that stands by shows as well, with figures of its own. NoAnswer when none is active, NoTicket.
        """
        if len(self.addresses) == 1:
            return self
        said = []
        for address in in_order(self.addresses):
            one = Pages(self.title, address, self.limits)
            try:
                role = read_role(one.read_json(path, "its state"))
            except NoTicket:
                raise
            except HadoopError as error:
                said.append(error.message)
                continue
            if role == ACTIVE:
                remember(self.addresses, address)
                return one
            said.append(f"{address} is {role or 'not active'}")
        raise NoAnswer(self.title, " or ".join(self.addresses), "; ".join(said))

    def ask(self, path: str, limits: Limits | None = None) -> Answer:
        """Get a page, whatever its status; redirects are followed. NoAnswer, TooLarge, NoTicket."""
        return self.send("GET", path, None, limits)

    def send(self, method: str, path: str, body: Body = None, limits: Limits | None = None) -> Answer:
        """Get the answer to a request; one that has a body is no longer answered by another daemon."""
        limits = limits or self.limits
        deadline = time.monotonic() + limits.seconds
        give_up = time.monotonic() + limits.patience
        while True:
            try:
                return self._ask_active(method, path, body, limits, deadline)
            except NoAnswer:
                if len(self.addresses) == 1 or time.monotonic() + AGAIN_SECONDS > give_up:
                    raise
                deadline = time.monotonic() + limits.seconds
                time.sleep(AGAIN_SECONDS)

    def _ask_active(self, method: str, path: str, body: Body, limits: Limits, deadline: float) -> Answer:
        """The answer of the first that does not stand by."""
        reasons = []
        for address in in_order(self.addresses):
            try:
                answer = self._follow(method, address, path, body, limits, deadline)
            except (OSError, HTTPException, ValueError) as error:
                reasons.append(str(error) or type(error).__name__)
                if len(self.addresses) == 1:
                    kind = NotSent if isinstance(error, Unreached) else NoAnswer
                    raise kind(self.title, address, reasons[0]) from error
                continue
            # One that stands by may lead to the active one under a name that the site files do not have for it.
            is_led_away = asks_for_ticket(answer) and answer.origin not in self.addresses
            if len(self.addresses) == 1 or not (is_led_away or stands_by(answer)):
                remember(self.addresses, answer.origin if answer.origin in self.addresses else address)
                return answer
            reasons.append(f"{address} is not active")
        raise NoAnswer(self.title, " or ".join(self.addresses), "; ".join(reasons))

    def _follow(self, method: str, address: str, path: str, body: Body, limits: Limits, deadline: float) -> Answer:
        """The answer of a daemon, or of those to which it leads."""
        url = f"{address}{path}"
        for _ in range(MOST_REDIRECTS):
            try:
                answer = self._connections.send(method, url, body, limits, deadline)
            except AnswerTooLarge:
                raise TooLarge(
                    f"{url.partition('?')[0]} is more than {limits.size_bytes / 1e6:,.0f} MB, too much to be read"
                ) from None
            if answer.status not in _REDIRECTS or not answer.headers["Location"]:
                return answer
            url = quote(urljoin(url, answer.headers["Location"]), safe=f"{IN_ADDRESSES}[]")
        raise HTTPException("it redirects in a circle")

    def read(self, path: str, what: str, limits: Limits | None = None) -> Answer:
        """Get a page that shows `what`; NotKnown when there is none, HadoopError when the daemon cannot answer."""
        answer = self.ask(path, limits)
        if answer.status in _DENIED or (answer.status >= 500 and _HIDDEN in answer.content):
            raise HadoopError(
                f"the {self.title} at {self.address} does not show {what} to this user ({said(answer)})",
                remedy="ask as a user who may see it; `klist` tells who you are to Kerberos",
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


def said(answer: Answer) -> str:
    """The status of an answer, and what the daemon says of it beyond."""
    usual = responses.get(answer.status, "")
    return f"status {answer.status}{f', {answer.reason}' if answer.reason not in ('', usual) else ''}"
