"""What goes over the network counts for the box whose program has the connection: with another machine, played by a
network namespace, and the kernel's own counters."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.docker_here import DockerHere
from bench.stage import until
from boxes.box import Box, Program, Use
from boxes.network import NetworkUse
from boxes.sockets import inodes_of
from boxes.terminal import Size

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 90.0
STRANGER = 4711
HERE, THERE = "198.51.100.1", "198.51.100.2"
HERE_6, THERE_6 = "fd98:51::1", "fd98:51::2"
PORT = 4000
NOTHING = Use(0.0, 0, 0, 0, 0)
MB = 1_000_000
BARELY = 100
"""Bytes of a question and of the first packet, which count too."""

PEER = f"""
import socket, threading

def serve(one):
    with one, one.makefile("rb") as lines:
        asked, given = map(int, lines.readline().split())
        one.sendall(bytes(asked))
        lines.read(given)
        one.sendall(b"k")
        lines.read()

listener = socket.create_server(("::", {PORT}), family=socket.AF_INET6, dualstack_ipv6=True)
print("ready", flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""
TALK = f"""
import os, socket, sys, time
from pathlib import Path

def talk(host, asked, given):
    one = socket.create_connection((host, {PORT}))
    one.sendall(b"%d %d\\n" % (asked, given))
    left = asked
    while left:
        left -= len(one.recv(left))
    one.sendall(bytes(given))
    assert one.recv(1) == b"k"
    return one

def talk_to_itself(host):
    with socket.create_server((host, 0)) as listener:
        one = socket.create_connection(listener.getsockname()[:2])
        other = listener.accept()[0]
    for _ in range(100):
        one.sendall(bytes(10_000))
        other.recv(10_000, socket.MSG_WAITALL)
    return one, other

def wait_for(name):
    while not Path(name).exists():
        time.sleep(0.05)
"""
PROGRAM = f"""{TALK}
kept = [talk_to_itself("127.0.0.1"), talk_to_itself("{HERE}")]
one = talk("{THERE}", 3_000_000, 2_000_000)
if os.fork() == 0:
    time.sleep(3600)
print("first", flush=True)
wait_for("second")
other = talk("{THERE_6}", 1_000_000, 500_000)
print("second", flush=True)
wait_for("third")
other.close()
print("third", flush=True)
time.sleep(3600)
"""


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


@pytest.fixture(scope="module")
def peer() -> Iterator[None]:
    """Another machine, which sends and takes what it is asked to."""
    if os.geteuid() or not shutil.which("ip"):
        pytest.skip("only root with ip can make a network")
    name = f"nw{os.getpid()}"
    try:
        run("ip", "netns", "add", name)
        run("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        for within, device, addresses in (
            (["ip"], name, (f"{HERE}/30", f"{HERE_6}/64")),
            (["ip", "-n", name], "eth0", (f"{THERE}/30", f"{THERE_6}/64")),
        ):
            for address in addresses:
                run(*within, "addr", "add", address, "dev", device, *(["nodad"] if ":" in address else []))
            run(*within, "link", "set", device, "up")
        words = ["ip", "netns", "exec", name, sys.executable, "-c", PEER]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as serving:
            assert serving.stdout and serving.stdout.readline() == b"ready\n"
            yield
            serving.kill()
    finally:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True)


@pytest.fixture
def talking(peer: None, box: Box, program: Callable[..., Program]) -> Iterator[Callable[[str], Use]]:
    """A program that speaks with the other machine: let it do its next step, and what is used then."""
    said = bytearray()
    box.start(program("python3", "-c", PROGRAM), lambda _, content: said.extend(content))

    def step(name: str) -> Use:
        (program().folder / name).touch()
        until(lambda: name.encode() in said, SECONDS, f"the {name} step is done: {said.decode()}")
        found: Use = until(box.use, SECONDS, "it is told what is used")
        return found

    yield step
    box.end(0)


def test_what_a_program_sends_and_receives_counts_once_and_not_what_stays_on_the_machine(
    talking: Callable[[str], Use],
) -> None:
    check_counted(talking("first"), 3 * MB, 2 * MB)


def test_it_counts_over_ipv6_too_and_stays_counted_when_the_connection_has_gone(talking: Callable[[str], Use]) -> None:
    check_counted(talking("first"), 3 * MB, 2 * MB)

    second = talking("second")
    third = talking("third")

    check_counted(second, 4 * MB, 2.5 * MB)
    assert (third.received_bytes, third.sent_bytes) == (second.received_bytes, second.sent_bytes)


def test_what_a_terminal_of_the_box_sends_and_receives_counts_too(talking: Callable[[str], Use], box: Box) -> None:
    talking("first")
    script = f"{TALK}\nkept = talk('{THERE}', 1_000_000, 1_000_000)\nprint('do' 'ne', flush=True)\ntime.sleep(3600)"
    screen = bytearray()

    shell = box.open_terminal(["python3", "-c", script], Size(), screen.extend)

    until(lambda: b"done" in screen, SECONDS, "the terminal has spoken with the other machine")
    check_counted(until(box.use, SECONDS, "it is told what is used"), 4 * MB, 3 * MB)
    shell.end()


def check_counted(used: Use, received: float, sent: float) -> None:
    assert used.received_bytes is not None and used.sent_bytes is not None
    assert received <= used.received_bytes < received + BARELY
    assert sent <= used.sent_bytes < sent + BARELY


@pytest.fixture
def connected(peer: None) -> Iterator[None]:
    """This process has received a MB from the other machine."""
    with socket.create_connection((THERE, PORT)) as one:
        one.sendall(b"1000000 0\n")
        assert len(one.recv(MB + 1, socket.MSG_WAITALL)) == MB + 1
        yield


@pytest.mark.usefixtures("connected")
def test_a_look_that_misses_a_process_does_not_have_it_counted_twice() -> None:
    network, own = NetworkUse(), [os.getpid()]

    looks = [network.total(NOTHING, pids).received_bytes for pids in (own, [], own, own)]

    assert looks == [MB + 1] * 4


@pytest.mark.usefixtures("connected")
def test_nothing_is_told_where_the_kernel_does_not_count_or_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    longer = struct.Struct("=4096xQQ")  # so what this kernel says is too short, as that of an older one is
    network = NetworkUse()

    def refuse(*_: object) -> None:
        raise OSError(errno.EPROTONOSUPPORT, os.strerror(errno.EPROTONOSUPPORT))

    with monkeypatch.context() as older:
        older.setattr("boxes.sockets._COUNTED", longer)
        assert network.total(NOTHING, [os.getpid()]) == NOTHING
    with monkeypatch.context() as closed:
        closed.setattr("boxes.sockets.socket.socket", refuse)
        assert network.total(NOTHING, [os.getpid()]) == NOTHING
        assert NetworkUse().total(NOTHING, []) == NOTHING, "no 0 of which nobody knows that it is true"
    with monkeypatch.context() as unknown:
        unknown.setattr("boxes.sockets.socket.IPPROTO_TCP", 200)  # the kernel says only at the end that it has none
        assert NetworkUse().total(NOTHING, []) == NOTHING
    assert network.total(NOTHING, [os.getpid()]).received_bytes == MB + 1


def as_stranger(*words: str, **environment: str) -> str:
    """What a program in Python prints that another user than root runs."""
    switch = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups", "/usr/bin/python3", "-c"]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run([*switch, *words], check=True, capture_output=True, text=True, env=variables).stdout.strip()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_nothing_is_told_of_processes_that_one_may_not_look_at() -> None:
    assert inodes_of([]) == set()
    look = "import os, subprocess; from boxes.sockets import inodes_of; print(inodes_of([os.getpid(), {}]))"
    ended = "(ended := subprocess.Popen(['true'])).pid, os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT).si_pid"
    assert as_stranger(look.format("1")) == "None", "what it carries would be missed"
    assert as_stranger(look.format(ended)) == "set()", "one that has ended carries nothing"


IN_DOCKER = """
import sys, time
from pathlib import Path
import boxes
from boxes.box import Image, Limits, Program

heard, box = [], boxes.create("docker")
program = Program(["python3", "-c", sys.argv[3]], {}, Path(sys.argv[1]), Limits(64), Image(sys.argv[2], print))
box.start(program, lambda _, content: heard.append(content))
while b"first" not in b"".join(heard) or not (used := box.use()):
    time.sleep(0.1)
print(used.received_bytes)
box.end(0)
"""


@pytest.mark.usefixtures("peer")
def test_who_is_not_root_sees_what_its_own_box_of_docker_receives(docker: DockerHere, passable: Path) -> None:
    own = passable / "own"
    own.mkdir()
    os.chown(own, STRANGER, STRANGER)
    docker.socket.chmod(0o666)
    docker.folder.chmod(0o755)

    told = as_stranger(IN_DOCKER, str(own), docker.image, PROGRAM, NODEWISE_BOXES=str(docker.socket))

    assert 3 * MB <= int(told) < 3 * MB + BARELY
