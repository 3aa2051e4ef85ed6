"""A job to follow: YARN's word as a script, and an application master that answers over real HTTP.

Run as a program, it attends such a job on its own terminal: `following.py JOB_ID FILE`; what a kill did stands in FILE.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from hadoop.client.yarn import Application
from jobs.application.status import JobStatus, NodeStatus

JOB = "application_1700000000000_0001"
WAITING = Application(JOB, "nodewise", "ACCEPTED", "UNDEFINED", 0.0, "", "N/A", 0.0)
RUNNING = replace(WAITING, state="RUNNING", attempt=1, host="127.0.0.1")
SUCCEEDED = replace(RUNNING, state="FINISHED", final="SUCCEEDED", progress=1.0)
NODES = (
    NodeStatus("worker1", "working", 100, 60, 0, 54, 8, 20.0),
    NodeStatus("worker2", "lost", 100, 10, 2, 10, 0, 5.0, failures=3, said="lost node"),
)
STATUS = JobStatus(JOB, "running", 1, 200, 70, 2, 12.0, 6.5, NODES, kind="classify", unit="images")


class Master:
    """Answers GET /status with `body`, or 503 while that is None; a word in `asked` for each time."""

    def __init__(self, status: JobStatus | None) -> None:
        self.body = None if status is None else json.dumps(status.to_json()).encode()
        self.asked: list[str] = []
        master = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                master.asked.append(self.path)
                self.send_response(503 if master.body is None else 200)
                self.end_headers()
                self.wfile.write(master.body or b"")

            def log_message(self, format: str, *args: object) -> None:
                """Tests need no log."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Script:
    """Stands for the session with YARN: tells one application after the other, an exception among them is raised."""

    def __init__(
        self, *told: Application | BaseException, killed: Callable[[str], object] = lambda job_id: None
    ) -> None:
        self._told: Iterable[Application | BaseException] = iter(told)
        self._killed = killed

    def kill(self, application_id: str) -> None:
        self._killed(application_id)

    def follow(self, application_id: str, progress: Callable[[Application], None]) -> Application:
        for one in self._told:
            if isinstance(one, BaseException):
                raise one
            progress(one)
            if one.has_ended:
                return one
        raise AssertionError("the script has no end")


class Endless:
    """A session whose job runs until it is killed."""

    def __init__(self, running: Application, killed: Callable[[str], object]) -> None:
        self._running = running
        self._killed = killed

    def kill(self, application_id: str) -> None:
        self._killed(application_id)

    def follow(self, application_id: str, progress: Callable[[Application], None]) -> Application:
        while True:
            progress(self._running)
            time.sleep(0.05)


def main(job_id: str, note: str) -> None:
    """Attend an endless job as `nodewise job submit --wait` does."""
    import os

    import click
    from rich.console import Console

    from jobs.commands.job.attend import attend

    os.close(os.open(os.ttyname(0), os.O_RDWR))  # whoever leads a session and opens a terminal gets its Ctrl-C
    master = Master(STATUS)
    session = Endless(replace(RUNNING, port=master.port), lambda killed: Path(note).write_text(killed))
    try:
        attend(session, job_id, Console(stderr=True, markup=False, highlight=False))
    except click.exceptions.Exit as left:
        sys.exit(left.exit_code)


if __name__ == "__main__":
    main(*sys.argv[1:])
