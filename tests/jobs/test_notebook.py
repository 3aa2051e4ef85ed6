"""`nodewise notebook`, through a real service to a Jupyter that is played."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast
from urllib.request import urlopen

import pytest

from infosvc.core.service import components_of
from infosvc.http.server import Server
from infosvc.settings import Settings
from infosvc.tasks import tunnels
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Conflict
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import EXAMPLE_ID, TaskNews, TaskProgress, TaskState
from infosvc.wire.tunnel.tunnel_end import TunnelCalls, TunnelEnd
from jobs.commands.notebook.command import SOCKET, START, TOKEN, _why_silent
from jobs.commands.notebook.passage import Passage
from jobs.kinds.task.tunnels import Tunnels
from tests.cluster.site import until
from tests.jobs.conftest import TOKEN as ADMIN
from tests.jobs.test_task_tunnels import CALLER, await_calls
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
ANSWER = b"HTTP/1.0 200 OK\r\n\r\nit is Jupyter"


class Site:
    """A service that can be started again, and a notebook's task whose runner is called as the submitter would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        self.token_file = folder / "token"
        self.token_file.touch(0o600)
        self.token_file.write_text(ADMIN)
        self._settings = Settings(database=f"sqlite:///{folder}/infosvc.db", token=ADMIN)
        self._start(free_port())  # which no connection takes while it is away
        self.client = InfoClient(self._server.url, ADMIN)
        spec = TaskSpec([*START, "jupyter", "server"], variables={TOKEN: "a/b"})
        self.task_id = self.client.submit_task(spec).task_id
        runner = InfoClient(self.client.url, self.client.task_token(self.task_id))
        runner.put_task_progress(self.task_id, TaskProgress(1, running=True))
        self._tunnels = Tunnels(runner, self.task_id, self.folder)
        self._is_over = threading.Event()

    def call_runner(self) -> None:
        """From now on."""
        threading.Thread(target=self._call, name=CALLER, daemon=True).start()

    def restart(self) -> None:
        """The service, at the same port."""
        self._stop()
        self._start(int(self.client.url.rpartition(":")[2]))

    def close(self) -> None:
        self._is_over.set()
        await_calls()
        self.client.close()
        self._stop()

    def free_places(self) -> int:
        """How many tunnels the user may open now; one that is over keeps its place until its readers have gone."""
        known = components_of(self._server.app).tunnels._known
        until(lambda: not any(one.is_over for one in list(known.values())))
        found: list[TunnelEnd] = []
        with suppress(Conflict):
            while True:
                found.append(TunnelCalls(self.client).open(self.task_id))
        for one in found:
            one.close()
        until(lambda: not any(one.is_over for one in list(known.values())))
        return len(found)

    @contextmanager
    def command(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """`nodewise notebook`, as its user calls it."""
        given = ["--url", self.client.url, "--token-file", str(self.token_file), "--port", "0", *words]
        pipe = subprocess.PIPE
        words = (sys.executable, "-m", "nodewise", "notebook", *given)
        with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, cwd=ROOT) as process:
            try:
                yield process
            finally:
                process.kill()

    def _call(self) -> None:
        while not self._is_over.wait(0.1):
            self._tunnels.join()

    def _start(self, port: int) -> None:
        self._server = Server(self._settings, "127.0.0.1", port)
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()

    def _stop(self) -> None:
        self._server.stop()
        self._thread.join()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


@contextmanager
def jupyter(site: Site) -> Iterator[None]:
    """It answers all that it is asked, at its socket."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(site.folder / SOCKET))
        listener.listen()

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.recv(1 << 12)
                        connection.sendall(ANSWER)

        threading.Thread(target=serve, daemon=True).start()
        yield


def passage_to(site: Site, say: Callable[[str], None] = print) -> Passage:
    return Passage(site.client, site.task_id, SOCKET, say, unused_seconds=60)


def asked(passage: Passage) -> bytes:
    """What a browser gets."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        threading.Thread(target=passage.serve, args=(listener,), daemon=True).start()
        with socket.create_connection(listener.getsockname(), timeout=60) as browser:
            browser.sendall(b"GET / HTTP/1.0\r\n\r\n")
            with suppress(ConnectionError):
                return b"".join(iter(lambda: browser.recv(1 << 12), b""))
    return b""


def test_a_browser_comes_back_when_the_service_was_started_again(site: Site) -> None:
    site.call_runner()
    with jupyter(site), passage_to(site) as passage:
        assert asked(passage) == ANSWER

        site.restart()

        until(lambda: asked(passage) == ANSWER)


def test_a_passage_that_is_left_keeps_no_place(site: Site) -> None:
    site.call_runner()
    with jupyter(site):
        for _ in range(tunnels.MOST_OF_ONE + 1):
            with passage_to(site) as passage:
                assert asked(passage) == ANSWER


def test_a_passage_that_leads_nothing_gives_its_place_back_and_leads_again(site: Site) -> None:
    site.call_runner()
    with jupyter(site), passage_to(site) as passage:
        for _ in range(2):
            assert asked(passage) == ANSWER
            assert site.free_places() == tunnels.MOST_OF_ONE - 1
            passage._unused_seconds = 0.2  # a busy machine may need longer than that for the look before
            assert asked(passage) == ANSWER
            until(lambda: site.free_places() == tunnels.MOST_OF_ONE)
            passage._unused_seconds = 60


def test_why_connections_fail_is_said_once(site: Site) -> None:
    site.call_runner()
    said: list[str] = []
    with passage_to(site, said.append) as passage:
        for _ in range(2):
            ours, its = socket.socketpair()
            with ours:
                passage._lead(its)

    assert said == [f"nothing listens at {SOCKET} in the program's folder"]


def test_connections_are_accepted_again_after_there_were_too_many_files(site: Site) -> None:
    ours, its = socket.socketpair()

    class Listener:
        """It fails once, gives a connection, and is closed then."""

        turns = 0

        def fileno(self) -> int:
            return -1 if self.turns == 2 else 0

        def accept(self) -> tuple[socket.socket, str]:
            self.turns += 1
            if self.turns == 1:
                raise OSError(errno.EMFILE, "too many open files")
            return its, ""

    site.call_runner()
    with jupyter(site), ours, passage_to(site) as passage:
        passage.serve(cast(socket.socket, Listener()))
        ours.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert ours.recv(1 << 12) == ANSWER


def test_a_notebook_whose_runner_does_not_come_is_given_up(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tunnels, "JOIN_SECONDS", 10.0)  # what is said after 2 s is said before that, on any machine
    monkeypatch.setattr(tunnels, "HEARTBEAT_SECONDS", 0.5)
    with site.command(site.task_id) as process:
        _, said = process.communicate(timeout=60)

    assert process.returncode == 1
    assert "waiting for Jupyter\n" in said
    assert "Error: the runner of the task does not come: a submitter has to run" in said


def test_a_notebook_is_waited_for_and_reached_and_told_how_it_ended(site: Site) -> None:
    site.call_runner()
    with site.command(site.task_id) as process:
        assert process.stdout and process.stderr
        assert "ends it" in process.stderr.readline()
        assert process.stderr.readline() == "waiting for Jupyter\n"
        with jupyter(site):
            address = process.stdout.readline().strip()
            assert address.endswith("/?token=a%2Fb")
            with urlopen(address, timeout=60) as answer:
                assert answer.read() == b"it is Jupyter"
        site.client.put_task_news(site.task_id, TaskNews(TaskState.FAILED, attempt=1, reason="it broke\x1b]0;mine\a"))
        assert process.stderr.readline() == f"{site.task_id} failed: it broke�]0;mine�\n"
        assert process.wait(60) == 1


@pytest.mark.parametrize("state", [TaskState.STOPPED, TaskState.SUCCEEDED])
def test_a_notebook_that_ended_as_it_should_is_no_failure(site: Site, state: TaskState) -> None:
    site.call_runner()
    with jupyter(site), site.command(site.task_id) as process:
        assert process.stdout and process.stdout.readline()
        site.client.put_task_news(site.task_id, TaskNews(state, attempt=1))
        _, said = process.communicate(timeout=60)

    assert process.returncode == 0
    assert said.endswith(f"{site.task_id} {state}\n")


def test_control_c_gives_the_place_back_and_leaves_the_notebook(site: Site) -> None:
    site.call_runner()
    with jupyter(site), site.command(site.task_id) as process:
        assert process.stdout and process.stderr and process.stdout.readline()
        assert site.free_places() == tunnels.MOST_OF_ONE - 1
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0

    assert site.free_places() == tunnels.MOST_OF_ONE
    assert site.client.task(site.task_id).state is TaskState.RUNNING


@pytest.mark.parametrize("option", ["--memory", "--folder", "--app", "--idle-minutes", "--env"])
def test_what_is_for_a_new_notebook_is_refused_for_one_that_is_there(tmp_path: Path, option: str) -> None:
    value = {"--memory": "2g", "--folder": str(tmp_path), "--app": "lab", "--idle-minutes": "5", "--env": "torch"}[
        option
    ]
    words = [sys.executable, "-m", "nodewise", "notebook", EXAMPLE_ID, option, value]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)

    assert done.returncode == 2
    assert f"{option} is for a new notebook, and {EXAMPLE_ID} is there already: leave it out" in done.stderr


def test_a_new_notebook_ends_what_is_idle_although_a_page_is_open(site: Site) -> None:
    with site.command("--app", "server", "--idle-minutes", "5", "--name", "mine") as process:
        assert process.stderr and "queued" in process.stderr.readline()
        assert "waiting for its program: task_" in process.stderr.readline()
        (task,) = site.client.tasks(text="mine")
        site.client.stop_task(task.task_id)
        assert process.wait(60) == 1, "it has not run"

    assert {
        "--ServerApp.shutdown_no_activity_timeout=300",
        "--MappingKernelManager.cull_idle_timeout=300",
        "--MappingKernelManager.cull_interval=60",
        "--MappingKernelManager.cull_connected=True",
        "--TerminalManager.cull_inactive_timeout=300",
        "--TerminalManager.cull_interval=60",
    } <= set(task.spec.argv)


def test_a_tunnel_that_ends_as_jupyter_is_asked_is_opened_again(site: Site) -> None:
    site.call_runner()
    with jupyter(site), passage_to(site) as passage:
        assert _why_silent(passage) is None
        assert passage._tunnel
        passage._tunnel._end._stop()  # it is over, and whoever reads it does not know yet

        assert _why_silent(passage) in ("", None), "None where its reader was quick, and has opened another"
        passage._tunnel.close()
        until(lambda: _why_silent(passage) is None)
