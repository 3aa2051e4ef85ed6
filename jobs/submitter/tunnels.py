"""Calls the runners of tasks to which somebody has opened a tunnel: they come to the information service themselves."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Protocol

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound
from infosvc.wire.tunnel.tunnel_end import TunnelCalls

SPARED_SECONDS, LONGEST_SPARED_SECONDS = 5.0, 60.0
"""How long a runner that did not hear is not called again, at first and at most: each such call takes seconds, while
other tasks wait, but a tunnel ends when nobody joins it within a minute."""


class Runners(Protocol):
    """What is needed of the cluster."""

    def call_for_tunnels(self, application_id: str) -> None:
        """Have the runner of a task join the tunnels that wait for it; HadoopError when it does not hear."""


class _Spared(NamedTuple):
    """Until when a runner is not called, and how long that was from the call that it did not hear."""

    until: float
    seconds: float


class TunnelCaller:
    """Each `call` is heard by the runners of all tunnels that wait; a runner that hears it again does nothing more."""

    def __init__(
        self,
        client: InfoClient,
        runners: Runners,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._calls = TunnelCalls(client)
        self._runners = runners
        self._say = say
        self._clock = clock
        self._spared: dict[str, _Spared] = {}

    def call(self) -> None:
        """InfoError when the service does not answer; what stands in the way of one runner is said."""
        waiting = {tunnel.task_id for tunnel in self._calls.waiting()}
        now = self._clock()
        self._spared = {one: spared for one, spared in self._spared.items() if one in waiting or spared.until > now}
        for task_id in waiting:
            if task_id not in self._spared or self._spared[task_id].until <= now:
                with suppress(NotFound):  # it was forgotten meanwhile
                    self._call(task_id, self._client.task(task_id).application_id)

    def _call(self, task_id: str, application_id: str | None) -> None:
        try:
            if application_id:
                self._runners.call_for_tunnels(application_id)
        except Exception as error:  # whatever its owner has put in the way must not hold up other tasks
            self._spare(task_id)
            self._say(f"the tunnel to {task_id} waits: {type(error).__name__}: {error}")
        else:
            self._spared.pop(task_id, None)

    def _spare(self, task_id: str) -> None:
        """Twice as long as after the call before."""
        before = self._spared.get(task_id)
        seconds = min(2 * before.seconds, LONGEST_SPARED_SECONDS) if before else SPARED_SECONDS
        self._spared[task_id] = _Spared(self._clock() + seconds, seconds)
