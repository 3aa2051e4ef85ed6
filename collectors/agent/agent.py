"""Wires one agent: slots that run, a spool that reports, a server that listens."""

from __future__ import annotations

import logging
import os
import select
import signal
import threading
import time
from pathlib import Path
from typing import Any

from collectors.agent.api import AgentServer
from collectors.agent.guard import Guard
from collectors.agent.launch import Launcher
from collectors.agent.settings import Settings, SettingsError
from collectors.agent.slots import Slots
from collectors.agent.spool import Spool
from collectors.agent.trust import Pushed
from infosvc.client import InfoClient
from infosvc.records import Wanted

SERVICE_PATIENCE_SECONDS = 5.0
REPORT_SECONDS = 1.0

log = logging.getLogger(__name__)


class Agent:
    """Listens from its construction on; `run` returns after SIGTERM, SIGINT or a stop over HTTP.

    OSError or ValueError when what was pushed cannot be read, SettingsError for a bad token file or address.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        token = settings.token()
        self._pushed = Pushed.load(Path(settings.directory))
        state_dir = Path(settings.state_dir)
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The server is bound first, so that a port in use leaves nothing behind; the guard closes its copy at once.
        self._server = self._listen(token)
        self._guard = Guard.start(state_dir)
        client = InfoClient(settings.service_url, token, SERVICE_PATIENCE_SECONDS)
        self._slots = Slots(Launcher(settings, self._pushed, self._guard), lambda run: self._spool.add(run))
        self._spool = Spool(settings.node_name, self._pushed.version, client, self._slots, time.monotonic)
        self._stopping = threading.Event()
        self._stop_asked = False
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)

    def status(self) -> dict[str, Any]:
        """What /healthz answers."""
        return {
            "node_name": self._settings.node_name,
            "agent_version": self._pushed.version,
            "wanted_version": self._slots.version,
            "pid": os.getpid(),
        }

    def stop(self) -> None:
        """End the loop soon; safe in signal handlers and in any thread."""
        self._stop_asked = True
        self._wake()

    def run(self) -> None:
        """Work until asked to stop; then no run is left behind."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop())
        threading.Thread(target=self._server.serve_forever, name="api", daemon=True).start()
        reporter = threading.Thread(target=self._report_loop, name="spool", daemon=True)
        reporter.start()
        log.info("agent %s of %s works", self._pushed.version, self._settings.node_name)
        try:
            while not self._stop_asked:
                self._sleep(self._slots.step(time.monotonic()))
        finally:
            self._slots.end()
            self._guard.close()
            self._stopping.set()
            self._server.shutdown()
            self._server.server_close()
            log.info("agent of %s ends", self._settings.node_name)

    def _listen(self, token: str) -> AgentServer:
        address = (self._settings.host, self._settings.port)
        try:
            return AgentServer(address, token, self.status, self._want, self.stop)
        except (OSError, UnicodeError) as error:
            raise SettingsError(
                f"it cannot listen on {address[0]}:{address[1]} ({error}): stop what uses that port, "
                "or enrol the node with another --port"
            ) from error

    def _want(self, wanted: Wanted) -> None:
        """Take the service's notice, unless a newer one is here already: notices may overtake each other."""
        if wanted.version > self._slots.version:
            self._slots.want(wanted)
            self._wake()

    def _report_loop(self) -> None:
        while not self._stopping.wait(REPORT_SECONDS):
            try:
                self._spool.step(time.monotonic())
            except Exception:  # reports must go on whatever one of them runs into
                log.exception("a report failed")

    def _wake(self) -> None:
        try:
            os.write(self._wake_write, b"\0")
        except BlockingIOError:
            return  # so many wake-ups are waiting that one more says nothing new

    def _sleep(self, seconds: float) -> None:
        if select.select([self._wake_read], [], [], seconds)[0]:
            os.read(self._wake_read, 4096)
