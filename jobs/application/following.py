"""Following a job: what is known of it at a moment, and what to do when whoever follows has had enough."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hadoop.client.yarn import Application
from hadoop.errors import HadoopError
from hadoop.rest.masters import Addresses
from hadoop.rest.pages import Limits, Pages
from hadoop.rest.resourcemanager import ResourceManager
from jobs.application.status import JobStatus

ASK_SECONDS = 2.0
ASK_LIMITS = Limits(connect=ASK_SECONDS, silence=ASK_SECONDS, seconds=10.0)
SILENT_SECONDS = 3.0
"""An application master that does not answer for so long is said to be silent: a slow answer is not news."""
PATIENCE_SECONDS = 120.0
"""How long a ResourceManager may be away: it restarts without harm to the job."""
AGAIN_SECONDS = 1.0
STATES = {"planning": "plans", "running": "works", "storing": "stores the results"}


@dataclass(frozen=True)
class Sight:
    """What is known of a job: YARN's word, and the last one of its application master, heard `silent` seconds ago.

    `trouble` tells why YARN's word is an old one.
    """

    application: Application
    status: JobStatus | None = None
    silent: float = 0.0
    trouble: str = ""

    def headline(self) -> str:
        """What the job does, in a few words.

        >>> from hadoop.client.yarn import Application
        >>> Sight(Application("application_1_0001", "", "ACCEPTED", "UNDEFINED", 0.0, "", "N/A", 0.0)).headline()
        'waits for YARN to start its application master'
        """
        return ", ".join(word for word in (self._doing(), self._attempt(), self.trouble) if word)

    def _doing(self) -> str:
        if self.application.has_ended:
            return self.application.final.lower()
        if self.application.state != "RUNNING":
            again = "again" if self.status else ""
            return f"waits for YARN to start its application master {again}".rstrip()
        if self.status is None:
            return "its application master starts"
        if self.silent > SILENT_SECONDS:
            return f"its application master has not answered for {self.silent:.0f} s, this is what it said last"
        return STATES.get(self.status.state, self.status.state)

    def _attempt(self) -> str:
        attempt = max(self.application.attempt, self.status.attempt if self.status else 1)
        return f"attempt {attempt}" if attempt > 1 else ""


class View(Protocol):
    """What shows a job, between `begin` and `end`; both may be called again after each other."""

    def begin(self) -> None: ...

    def show(self, sight: Sight) -> None: ...

    def end(self) -> None: ...


class Following(Protocol):
    """The part of a session with YARN that following needs."""

    def follow(self, application_id: str, progress: Callable[[Application], None]) -> Application: ...


def ask(application: Application) -> JobStatus | None:
    """What a job's application master says of it; None when there is none, or it says nothing that makes sense."""
    if application.port <= 0 or application.state != "RUNNING":
        return None
    try:
        address = f"http://{application.host}:{application.port}"
        # It is the program of a user, who must not get a ticket of another one.
        master = Pages("application master", address, ASK_LIMITS, trusts=lambda _: False)
        return JobStatus.from_json(master.read_json("/status", application.application_id))
    except (HadoopError, ValueError, KeyError, TypeError):
        return None


def ask_proxy(managers: Addresses, application_id: str) -> JobStatus | None:
    """As `ask`, through the ResourceManager, of several the active one, which knows where the application master is."""
    try:
        body = ResourceManager(managers).read_proxied(application_id, "/status", ASK_LIMITS)
        return JobStatus.from_json(json.loads(body))
    except (HadoopError, ValueError, KeyError, TypeError):
        return None


class Watch:
    """Remembers what was last heard of one job, so that a restart of its application master blanks nothing."""

    def __init__(
        self,
        asked: Callable[[Application], JobStatus | None] = ask,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = asked
        self._clock = clock
        self._status: JobStatus | None = None
        self._heard = clock()

    def look(self, application: Application, trouble: str = "") -> Sight:
        """The job as it is now."""
        status = self._ask(application)
        if status:
            self._status, self._heard = status, self._clock()
        return Sight(application, self._status, self._clock() - self._heard, trouble)


def follow(
    session: Following,
    application_id: str,
    view: View,
    watch: Watch | None = None,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Application:
    """Show a job until it ends; JobError when it did not succeed.

    A ResourceManager that goes away on the way is waited for; HadoopError when it does not come back, or when it
    never knew the job. KeyboardInterrupt passes.
    """
    watch = watch or Watch()
    last: tuple[Application, float] | None = None

    def progress(application: Application) -> None:
        nonlocal last
        last = application, clock()
        view.show(watch.look(application))

    view.begin()
    try:
        while True:
            try:
                return session.follow(application_id, progress)
            except HadoopError as error:
                if last is None or clock() - last[1] > PATIENCE_SECONDS:
                    raise
                view.show(watch.look(last[0], f"YARN does not answer ({error})"))
                pause(AGAIN_SECONDS)
    finally:
        view.end()
