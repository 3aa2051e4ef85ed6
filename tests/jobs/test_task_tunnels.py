"""Tunnels from a user's command to a task's box: through a real service, to real programs."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

import boxes
from boxes.box import Box, Limits, Program
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError, NotFound
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskProgress
from infosvc.wire.tunnel.described import Tunnel
from infosvc.wire.tunnel.frames import DATA, Frame
from infosvc.wire.tunnel.frames import MOST_LINES as LINE_NUMBERS
from infosvc.wire.tunnel.tunnel_end import TunnelCalls
from jobs.commands.task.task_tunnel import UserTunnel
from jobs.kinds.task.tunnels import MOST_LINES, Tunnels
from tests.cluster.site import until
from tests.threads import join_threads

ROOT = Path(__file__).resolve().parents[2]
CALLER = "calls a runner"


def await_calls() -> None:
    """Until those who are to call no runner any more do not, and none that they have called is on its way."""
    for name in (CALLER, "tunnels"):
        join_threads(name)


class Running:
    """A task whose program sleeps in a box of processes, and its runner's part in tunnels."""

    def __init__(self, client: InfoClient, folder: Path) -> None:
        self.client = client
        self.folder = folder
        self.task: Task = client.submit_task(TaskSpec(["sleep", "3600"]))
        self.runner = InfoClient(client.url, client.task_token(self.task.task_id))
        self.runner.put_task_progress(self.task.task_id, TaskProgress(1, running=True))
        self.tunnels = Tunnels(self.runner, self.task.task_id, folder)
        self.begin()
        self._is_over = threading.Event()
        threading.Thread(target=self._join, name=CALLER, daemon=True).start()

    def begin(self) -> None:
        """Start the program."""
        self.box: Box = boxes.create("process")
        environment = {"PATH": os.environ["PATH"], "COLOUR": "green", "PS1": "$ "}
        self.box.start(Program(["sleep", "3600"], environment, self.folder, Limits(64)), lambda *_: None)
        self.tunnels.enter(self.box)

    def close(self) -> None:
        self._is_over.set()
        await_calls()
        self.box.end(0)

    def _join(self) -> None:
        """Call the runner again and again, as the submitter does while tunnels wait."""
        while not self._is_over.wait(0.1):
            self.tunnels.join()


@pytest.fixture
def running(client: InfoClient, tmp_path: Path) -> Iterator[Running]:
    folder = tmp_path / "work"
    folder.mkdir()
    made = Running(client, folder)
    yield made
    made.close()


class Heard:
    """What a line brought, and how it ended."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.how: Mapping[str, Any] | None = None
        self.may_take = threading.Event()
        self.may_take.set()

    def take(self, content: bytes) -> None:
        self.may_take.wait()
        self.content += content

    def hear_size(self, columns: int, rows: int) -> None:
        """The user has the terminal."""

    def hear_end(self) -> None:
        """What came before is still taken."""

    def end(self, how: Mapping[str, Any]) -> None:
        self.how = how

    def until_ended(self) -> tuple[Mapping[str, Any], bytes]:
        until(lambda: self.how is not None)
        assert self.how is not None
        return self.how, bytes(self.content)


@contextmanager
def listening(path: Path, serve: Callable[[socket.socket], None]) -> Iterator[None]:
    """A socket of a program that serves each connection."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(path))
        listener.listen()

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        serve(connection)

        threading.Thread(target=accept, daemon=True).start()
        yield


def test_connections_lead_to_a_socket_of_the_program_s_folder(running: Running) -> None:
    def shout(connection: socket.socket) -> None:
        connection.sendall(connection.recv(100).upper())

    with (
        listening(running.folder / "loud.sock", shout),
        UserTunnel(running.client, running.task.task_id) as tunnel,
    ):
        for word in (b"one", b"two"):
            heard = Heard()
            line = tunnel.open({"socket": "loud.sock"}, heard)
            line.send(word)
            assert heard.until_ended() == ({}, word.upper())


@pytest.mark.parametrize("name", ["link.sock", "file.sock", "none.sock", "../outside.sock", "", "..", "a\0b"])
def test_what_is_no_socket_of_that_folder_is_not_connected_to(running: Running, name: str) -> None:
    (running.folder / "link.sock").symlink_to("../outside.sock")
    (running.folder / "file.sock").write_text("")
    with (
        listening(running.folder.parent / "outside.sock", lambda connection: connection.sendall(b"secret")),
        UserTunnel(running.client, running.task.task_id) as tunnel,
    ):
        heard = Heard()
        tunnel.open({"socket": name}, heard)
        how, content = heard.until_ended()

    assert "in the program's folder" in how["why"]
    assert content == b""


@pytest.mark.parametrize("asked", [{}, {"terminal": []}, {"terminal": {"argv": "ls"}}, {"socket": 7}, [], "x"])
def test_what_cannot_be_opened_harms_no_other_line(running: Running, asked: Any) -> None:
    with UserTunnel(running.client, running.task.task_id) as tunnel:
        wrong, right = Heard(), Heard()
        tunnel.open(asked, wrong)
        tunnel.open(terminal("echo", "still here"), right)
        assert "a line leads to" in wrong.until_ended()[0]["why"]
        assert right.until_ended() == ({"code": 0}, b"still here\r\n")


def test_all_lines_end_with_the_tunnel(running: Running) -> None:
    with UserTunnel(running.client, running.task.task_id) as tunnel:
        heard = Heard()
        tunnel.open(terminal("sh", "-c", "echo $$; exec sleep 3600"), heard)
        until(lambda: heard.content)
        program = Path("/proc", heard.content.decode().strip())
        assert program.exists()

    until(lambda: not program.exists())


def terminal(*argv: str) -> dict[str, Any]:
    """What opens one."""
    return {"terminal": {"argv": argv, "columns": 80, "rows": 24}}


def test_a_line_whose_bytes_nobody_takes_holds_up_no_other(running: Running) -> None:
    """Of either end: a program that reads nothing, and a user who looks at nothing."""
    with UserTunnel(running.client, running.task.task_id) as tunnel:
        deaf, unread, other = Heard(), Heard(), Heard()
        unread.may_take.clear()
        line = tunnel.open(terminal("sh", "-c", "stty raw; exec sleep 3600.5"), deaf)
        threading.Thread(target=suppressed, args=(line.send, bytes(5_000_000)), daemon=True).start()
        tunnel.open(terminal("sh", "-c", "yes | head -c 5000000"), unread)
        time.sleep(1)

        tunnel.open(terminal("echo", "still here"), other)
        assert other.until_ended() == ({"code": 0}, b"still here\r\n")
        line.close()
        until(lambda: not sleeping("3600.5"))
        unread.may_take.set()
        assert unread.until_ended()[0] == {"code": 0}
        assert len(unread.content) == 7_500_000, "a terminal makes two bytes of each end of a line"


def test_little_pieces_travel_together_where_calls_take_long(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    write = TunnelCalls.write

    def slowly(self: TunnelCalls, tunnel: Tunnel, begin: int, content: bytes) -> None:
        calls["of the runner" if self._token == running.runner._token else "of the user"] += 1
        time.sleep(0.05)
        write(self, tunnel, begin, content)

    monkeypatch.setattr(TunnelCalls, "write", slowly)
    with UserTunnel(running.client, running.task.task_id) as tunnel:
        heard = Heard()
        tunnel.open(terminal("sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x"), heard)
        how, content = heard.until_ended()

    assert (how, len(content)) == ({"code": 0}, 1_000_000)
    assert calls["of the runner"] < 50, "a terminal gives some 4 KiB at a time"
    assert calls["of the user"] < 20


def test_a_program_reads_all_that_was_sent_before_its_line_was_closed(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.kinds.task.tunnels.LAST_SECONDS", 100.0)
    read = bytearray()

    def slowly(connection: socket.socket) -> None:
        while piece := connection.recv(50_000):
            read.extend(piece)
            connection.sendall(b"so far")
            time.sleep(0.02)

    with (
        listening(running.folder / "slow.sock", slowly),
        UserTunnel(running.client, running.task.task_id) as tunnel,
    ):
        line = tunnel.open({"socket": "slow.sock"}, Heard())
        line.send(bytes(600_000))
        line.close()
        until(lambda: len(read) == 600_000)


def test_a_user_who_fails_to_take_what_came_ends_the_line(running: Running) -> None:
    class Failing(Heard):
        def take(self, content: bytes) -> None:
            raise ValueError("no room for it")

    with UserTunnel(running.client, running.task.task_id) as tunnel:
        heard = Failing()
        tunnel.open(terminal("sh", "-c", "echo so far; exec sleep 3600.7"), heard)

        assert "no room for it" in heard.until_ended()[0]["why"]
        until(lambda: not sleeping("3600.7"))


def test_a_line_that_brings_more_than_was_asked_for_ends_with_its_program(running: Running) -> None:
    """As a client of somebody's own may, which keeps no window."""
    with UserTunnel(running.client, running.task.task_id) as tunnel:
        heard = Heard()
        line = tunnel.open(terminal("sh", "-c", "stty raw; echo ready; exec sleep 3600.9"), heard)
        until(lambda: heard.content)
        for _ in range(20):
            line._send([Frame(DATA, 1, bytes(60_000))])

        assert heard.until_ended()[0] == {"why": "the other end sent more than was asked for"}
        until(lambda: not sleeping("3600.9"))


def test_a_task_has_only_so_many_terminals_of_all_its_tunnels(running: Running) -> None:
    with (
        UserTunnel(running.client, running.task.task_id) as one,
        UserTunnel(running.client, running.task.task_id) as other,
    ):
        lines = [tunnel.open(terminal("cat"), Heard()) for tunnel in (one, one, other, other)]
        until(lambda: not running.tunnels._places._value)
        more = Heard()
        one.open(terminal("cat"), more)
        assert more.until_ended()[0] == {"why": "a task has at most 4 terminals: end one of them"}

        lines[0].close()
        until(lambda: running.tunnels._places._value)
        again = Heard()
        other.open(terminal("true"), again)
        assert again.until_ended()[0] == {"code": 0}


def test_a_tunnel_has_only_so_many_lines(running: Running) -> None:
    with (
        socket.socket(socket.AF_UNIX) as listener,
        UserTunnel(running.client, running.task.task_id) as tunnel,
    ):
        listener.bind(os.path.relpath(running.folder / "held.sock"))
        listener.listen(100)
        for _ in range(MOST_LINES):
            tunnel.open({"socket": "held.sock"}, Heard())
        more = Heard()
        tunnel.open({"socket": "held.sock"}, more)
        assert more.until_ended()[0] == {"why": f"a tunnel has at most {MOST_LINES} lines"}


def test_terminals_open_in_the_box_of_the_program_that_runs_now(running: Running) -> None:
    with UserTunnel(running.client, running.task.task_id) as tunnel:
        before, after = Heard(), Heard()
        tunnel.open(terminal("true"), before)
        assert before.until_ended()[0] == {"code": 0}
        running.box.end(0)
        running.begin()

        tunnel.open(terminal("true"), after)

        assert after.until_ended()[0] == {"code": 0}


def test_what_is_opened_when_the_tunnel_is_over_leaves_nothing(running: Running) -> None:
    tunnel = UserTunnel(running.client, running.task.task_id)
    tunnel.close()
    for _ in range(5):
        with pytest.raises(NotFound):
            tunnel.open(terminal("true"), Heard())

    until(lambda: not [one for one in threading.enumerate() if one.name == "line"])


def suppressed(send: Callable[[bytes], None], content: bytes) -> None:
    with suppress(InfoError):
        send(content)


def sleeping(seconds: str) -> bool:
    return any(seconds in (one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"]))


def test_numbers_in_use_are_left_out_when_they_begin_again(running: Running) -> None:
    with UserTunnel(running.client, running.task.task_id) as tunnel:
        first, last, second = Heard(), Heard(), Heard()
        line = tunnel.open(terminal("cat"), first)
        tunnel._next = LINE_NUMBERS - 2

        tunnel.open(terminal("true"), last)
        tunnel.open(terminal("true"), second)

        assert (last.until_ended()[0], second.until_ended()[0]) == ({"code": 0}, {"code": 0})
        line.send(b"still here\n")
        until(lambda: b"still here" in first.content)


def test_a_number_in_use_opens_nothing(running: Running) -> None:
    with UserTunnel(running.client, running.task.task_id) as tunnel:
        first = Heard()
        tunnel.open(terminal("cat"), first)
        tunnel._next = 0  # as a program of somebody's own might

        second = Heard()
        tunnel._traffic._lines.clear()
        tunnel.open(terminal("cat"), second)

        assert second.until_ended()[0] == {"why": "line 1 is open already"}


def shell(running: Running, *argv: str, **how: Any) -> subprocess.Popen[bytes]:
    """`nodewise task shell`, as its user calls it."""
    words = ["--url", running.client.url, "--token-file", str(running.folder.parent / "token")]
    (running.folder.parent / "token").write_text(str(running.client._token))
    (running.folder.parent / "token").chmod(0o600)
    command = [sys.executable, "-m", "nodewise", "task", "shell", *words, running.task.task_id, *argv]
    return subprocess.Popen(command, cwd=ROOT, **how)


def test_a_shell_that_is_fed_by_a_pipe_ends_with_its_exit_status(running: Running) -> None:
    pipe = subprocess.PIPE
    with shell(running, "--", "sh", stdin=pipe, stdout=pipe, stderr=pipe) as process:
        shown, said = process.communicate(b"echo $COLOUR, $PWD\nexit 7\n", timeout=60)

    assert process.returncode == 7, said
    assert f"green, {running.folder}".encode() in shown


def test_input_that_ends_ends_a_shell(running: Running) -> None:
    pipe = subprocess.PIPE
    with shell(running, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        shown, said = process.communicate(b"echo $COLOUR", timeout=60)

    assert process.returncode == 0, said
    assert b"green\r\n" in shown


def test_a_shell_whose_output_nobody_reads_ends(running: Running) -> None:
    with shell(running, "--", "yes", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"y\r\n"
        process.stdout.close()
        assert process.wait(60) == 1


class Typist:
    """A terminal here in which the command runs, as its user sees it."""

    def __init__(self, running: Running, *argv: str) -> None:
        self._ours, its = pty.openpty()
        self.process = shell(running, *argv, stdin=its, stdout=its, stderr=its, start_new_session=True)
        os.close(its)
        self.shown = bytearray()

    def type(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def sees(self, text: bytes) -> bool:
        if select.select([self._ours], [], [], 0.05)[0]:
            with suppress(OSError):
                self.shown += os.read(self._ours, 1 << 16)
        return text in self.shown

    def close(self) -> int:
        """The exit status, once the command has ended."""
        until(lambda: self.sees(b"\0") or self.process.poll() is not None)
        os.close(self._ours)
        return self.process.wait()


def test_keys_go_to_the_program_there_control_c_included(running: Running) -> None:
    typist = Typist(running)
    typist.type(b"sh -c \"echo be''gun; exec sleep 3600\"\r")  # which has the terminal by then
    until(lambda: typist.sees(b"begun\r\n"))

    typist.type(b"\x03")
    typist.type(b"echo af''ter; exit 3\r")

    until(lambda: typist.sees(b"after\r\n"))
    assert typist.close() == 3


def test_another_size_is_told_to_the_program_there(running: Running) -> None:
    typist = Typist(running)
    typist.type(b"stty size\r")
    until(lambda: typist.sees(b"24 80"))

    fcntl.ioctl(typist._ours, termios.TIOCSWINSZ, struct.pack("4H", 40, 132, 0, 0))
    os.kill(typist.process.pid, signal.SIGWINCH)
    typist.type(b"until stty size | grep '40 1''32'; do sleep 0.1; done; exit\r")

    until(lambda: typist.sees(b"40 132"))
    typist.close()


def test_a_key_ends_a_shell_that_answers_no_more(running: Running) -> None:
    typist = Typist(running, "--", "sh", "-c", "trap '' INT; echo rea''dy; while :; do sleep 1; done")
    until(lambda: typist.sees(b"ready"))

    typist.type(b"\x1d")

    assert typist.close() == 0


def test_a_shell_ends_with_the_program_of_its_task(running: Running) -> None:
    typist = Typist(running)
    typist.type(b"echo rea''dy\r")
    until(lambda: typist.sees(b"ready"))

    running.close()

    assert typist.close() == 137


def test_a_task_that_does_not_run_has_no_shell(running: Running) -> None:
    running.task = running.client.submit_task(TaskSpec(["train"]))
    with shell(running, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        _, said = process.communicate(timeout=60)

    assert process.returncode == 1
    assert b"is queued: wait until its program runs" in said.replace(b"\n", b" ")
