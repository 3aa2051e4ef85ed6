"""Wires one agent: slots that run, a spool that reports, a log of runs, a server that listens."""

from __future__ import annotations

import logging
import os
import select
import ssl
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from collectors.agent.api import AgentServer, Calls
from collectors.agent.daemon import cut_log
from collectors.agent.launch import Launcher
from collectors.agent.reports.backlog import Backlog, Clocks, boot_name
from collectors.agent.reports.runlog import VALUE_LIMIT, RunLog, clip
from collectors.agent.reports.spool import Spool
from collectors.agent.run.guard import Guard
from collectors.agent.run.trust import Pushed
from collectors.agent.schedule import node_phase
from collectors.agent.settings import Settings, SettingsError
from collectors.agent.slot import Ended
from collectors.agent.slots import Slots
from collectors.agent.tidy import Tidy
from infosvc.wire.answers import PastRun
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Revoked

SERVICE_PATIENCE_SECONDS = 5.0
QUIET_SECONDS = 0.15  # with no run for so long, a batch is complete
BROKEN_SECONDS = 5.0  # pause after an error of our own
PARTING_SECONDS = 1.0  # for a report that is under way when the agent ends

# A data name cannot begin with a dot, so no slot's folder collides with these.
SPOOL_FOLDER, LOG_FOLDER = ".spool", ".log"

log = logging.getLogger(__name__)


class Agent:
    """Listens from its construction on; `run` returns after `stop`, or when the service has revoked the token. A
    `log_file`, to which its log is appended, is kept short.

    OSError or ValueError when what was pushed cannot be read or another agent uses the state directory, SettingsError
    for a bad token file, address or certificate.
    """

    def __init__(self, settings: Settings, log_file: Path | None = None) -> None:
        self._settings = settings
        self._token = token = settings.token()
        self._pushed = Pushed.load(Path(settings.directory))
        state_dir = Path(settings.state_dir)
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The server is bound first, so that a port in use leaves nothing behind.
        self._server = self._listen(token)
        self._guard = Guard.start(state_dir)
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        self._log = RunLog(state_dir / LOG_FOLDER)
        self._launcher = Launcher(settings, self._pushed, self._guard)
        self._slots = Slots(self._launcher, self._note_end, node_phase(settings.node_name), self._wake)
        self._tidy = Tidy(state_dir, self._log.keep_only, lambda: cut_log(log_file) if log_file else None)
        self._spool = self._make_spool(token)
        self._stop_asked = False

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
        threading.Thread(target=self._server.serve_forever, name="api", daemon=True).start()
        reporter = threading.Thread(target=self._report_loop, name="spool", daemon=True)
        reporter.start()
        log.info("agent %s of %s works", self._pushed.version, self._settings.node_name)
        try:
            while not self._stop_asked:
                self._step()
        finally:
            self._spool.wake()
            self._slots.end()
            self._launcher.close()
            self._guard.close()
            reporter.join(PARTING_SECONDS)
            self._spool.close()
            self._server.shutdown()
            self._server.server_close()
            log.info("agent of %s ends", self._settings.node_name)

    def _make_spool(self, token: str) -> Spool:
        settings = self._settings
        client = InfoClient(settings.service_url, token, SERVICE_PATIENCE_SECONDS, settings.ca_file or None)
        clocks = Clocks(time.monotonic, time.time, boot_name())
        backlog = Backlog(Path(settings.state_dir) / SPOOL_FOLDER, settings.spool_bytes, clocks)
        phase = node_phase(settings.node_name)
        return Spool(settings.node_name, self._pushed.version, client, self._slots, backlog, time.monotonic, phase)

    def _listen(self, token: str) -> AgentServer:
        settings = self._settings
        calls = Calls(self.status, self._refresh, lambda data_name: self._log.runs(data_name))
        try:
            return AgentServer((settings.host, settings.port), token, calls, _tls(settings))
        except (OSError, UnicodeError) as error:
            raise SettingsError(
                f"it cannot listen on {settings.host}:{settings.port} ({error}): stop what uses that port, "
                "or enrol the node with another --port"
            ) from error

    def _refresh(self) -> None:
        """Ask the service at once what is new: a wanted state, or that this agent is to end."""
        self._spool.refresh()

    def _note_end(self, ended: Ended) -> None:
        run = ended.run
        value = run.value[:VALUE_LIMIT] if run.value is not None else None
        stderr = clip(ended.stderr) or ("" if run.exit_status is not None else run.reason or "")
        past = PastRun(round(time.time(), 3), ended.outcome, run.duration or 0.0, run.exit_status, value, stderr)
        self._log.add(run.data_name, past)
        self._spool.add(run)

    def _step(self) -> None:
        now = time.monotonic()
        seconds = self._slots.step(now)
        if self._slots.quiet_seconds(now) > QUIET_SECONDS:
            self._spool.flush()
        self._tidy.step(now, self._slots.names, self._slots.busy)
        self._sleep(seconds)

    def _report_loop(self) -> None:
        while not self._stop_asked:
            try:
                self._spool.wait(self._spool.step(time.monotonic()))
            except Revoked as error:
                log.warning("the service has revoked this agent's token, so it ends: %s", error)
                self._forget_token()
                self.stop()
            except Exception:  # reports must go on whatever one of them runs into
                log.exception("a report failed")
                self._spool.wait(BROKEN_SECONDS)

    def _forget_token(self) -> None:
        """Leave no revoked token on the node; what another enrolment has written since stays."""
        file = Path(self._settings.token_file)
        with suppress(OSError):
            if file.read_text().strip() == self._token:
                file.unlink()

    def _wake(self) -> None:
        try:
            os.write(self._wake_write, b"\0")
        except BlockingIOError:
            return  # so many wake-ups are waiting that one more says nothing new

    def _sleep(self, seconds: float) -> None:
        """Wait for the end or the output of a run, a call, or the next due moment."""
        poll = select.poll()
        for descriptor in (self._wake_read, *self._slots.descriptors):
            poll.register(descriptor, select.POLLIN)
        # One millisecond more than asked: waking early would only mean waking twice.
        if any(descriptor == self._wake_read for descriptor, _ in poll.poll(seconds * 1000 + 1)):
            os.read(self._wake_read, 4096)


def _tls(settings: Settings) -> ssl.SSLContext | None:
    """The agent's own certificate, when it has one."""
    if not settings.tls_cert:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(settings.tls_cert, settings.tls_key)
    except OSError as error:  # an SSLError, too
        raise SettingsError(f"the certificate {settings.tls_cert} cannot be used ({error}): replace it") from error
    return context
