"""Boxes of Docker: what a program sees there, its limits, and what becomes of it when anybody is killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from bench.docker_here import DockerHere
from boxes import create
from boxes.box import Box, BoxError, Ended, Image, Limits, Program
from boxes.broker.frames import USE
from boxes.broker.guard import end_by_group
from tests.boxes.test_boxes import Heard, of_folder, until

SECONDS = 90.0
Run = Callable[..., tuple[Box, Heard]]


@pytest.fixture
def started(docker: DockerHere, tmp_path: Path) -> Run:
    """Start a program in the image; what is in the way of a second test is not the first one's."""

    def start(*argv: str, memory_mb: int = 64, vcores: int = 1, **environment: str) -> tuple[Box, Heard]:
        heard, box = Heard(), create("docker")
        image = Image(docker.image, docker.fetch)
        box.start(Program(argv, environment, tmp_path, Limits(memory_mb, vcores), image), heard)
        return box, heard

    return start


def broker_of(docker: DockerHere) -> list[psutil.Process]:
    """The broker's processes for boxes: the one that follows it, and its guard."""
    return psutil.Process(docker.broker.pid).children(recursive=True)


def test_the_program_has_its_folder_a_tmp_of_its_own_and_may_write_nowhere_else(started: Run, tmp_path: Path) -> None:
    (tmp_path / "given").write_text("given")
    script = (
        "cat given; echo made > made; echo x > /tmp/x && echo tmp; echo x > /usr/x || echo closed; echo $MARK $WORD"
    )

    box, heard = started("bash", "-c", script, WORD="word")

    assert box.wait(SECONDS) == Ended(0)
    assert heard.stdout.decode() == "giventmp\nclosed\none word\n"
    assert (tmp_path / "made").read_text() == "made\n"


def test_nothing_of_the_machine_is_there_but_that_folder(started: Run) -> None:
    box, heard = started("python3", "-c", "import os; print(sorted(os.listdir('/')), os.listdir('/tmp'))")

    assert box.wait(SECONDS) == Ended(0)
    listed = heard.stdout.decode()
    assert "'root'" not in listed and "'work'" not in listed and "'etc'" in listed


def test_what_the_image_calls_a_volume_is_in_the_boxs_memory_and_goes_with_it(started: Run, docker: DockerHere) -> None:
    script = (
        "echo x > /data/x && cat /data/x; grep -c ' /data tmpfs ' /proc/mounts; head -c 100000000 /dev/zero > /data/y"
    )
    box, heard = started("bash", "-c", script)

    ended = box.wait(SECONDS)

    assert heard.stdout == b"x\n1\n"
    assert ended is not None and ended.code != 0, "it has no more room than the box has memory"
    until(lambda: docker.containers() == [])
    assert not docker.engine.ask("GET", "/volumes")["Volumes"]


def test_no_capability_no_new_privilege_and_only_the_callers_user(started: Run) -> None:
    box, heard = started("grep", "-E", "^(CapEff|CapBnd|NoNewPrivs|Uid|Seccomp):", "/proc/self/status")

    assert box.wait(SECONDS) == Ended(0)
    told = dict(line.split(":\t") for line in heard.stdout.decode().splitlines())
    assert told["CapEff"] == told["CapBnd"] == "0" * 16
    assert (told["NoNewPrivs"], told["Seccomp"]) == ("1", "2")
    assert told["Uid"].split() == [str(os.getuid())] * 4


def test_a_program_that_needs_more_memory_than_it_has_is_ended_and_the_reason_said(started: Run) -> None:
    box, heard = started("python3", "-c", "print('begun', flush=True); x = b'x' * 200_000_000; print(len(x))")

    ended = box.wait(SECONDS)

    assert ended == Ended(signal=signal.SIGKILL, said="it needed more than 64 MB")
    assert heard.stdout == b"begun\n"


def test_cores_and_processes_are_limited(started: Run, docker: DockerHere) -> None:
    box, _ = started("sleep", "60")
    found = docker.engine.ask("GET", f"/containers/{docker.containers()[0]}/json")["HostConfig"]
    box.end(0)

    assert (found["NanoCpus"], found["Memory"], found["MemorySwap"]) == (10**9, 64 << 20, 64 << 20)
    assert found["PidsLimit"] == 4096


def test_what_the_image_does_not_have_is_refused(started: Run, tmp_path: Path) -> None:
    (tmp_path / "closed.sh").write_text("#!/bin/sh\n")
    for name, sentence in {
        "nowhere": "there is no program nowhere in the image",
        "/nowhere/at/all": "there is no program /nowhere/at/all in the image",
        "/usr": "/usr is a folder",
        "./nowhere": "there is no program ./nowhere",
        "./closed.sh": "./closed.sh is not executable",
    }.items():
        with pytest.raises(BoxError) as error:
            started(name)
        assert str(error.value) == sentence


def test_a_script_without_its_interpreter_ends_with_the_reason(started: Run, tmp_path: Path) -> None:
    (tmp_path / "lost.sh").write_text("#!/nowhere/sh\n")
    (tmp_path / "lost.sh").chmod(0o755)

    ended = started("./lost.sh")[0].wait(SECONDS)

    assert ended == Ended(127, said="No such file or directory")


def test_an_image_that_docker_does_not_have_is_brought(started: Run, docker: DockerHere, tmp_path: Path) -> None:
    docker.forget_image()

    box, heard = started("bash", "-c", "echo $MARK")

    assert box.wait(SECONDS) == Ended(0)
    assert heard.stdout == b"one\n"
    assert list(tmp_path.parent.glob("image-*")) == []


@pytest.mark.parametrize("victim", ["broker", "guard", "both at once"])
def test_a_broker_that_is_killed_takes_the_box_along(
    victim: str, started: Run, docker: DockerHere, tmp_path: Path
) -> None:
    box, heard = started("bash", "-c", "trap '' TERM; (sleep 3600) & echo ready; sleep 3600")
    until(lambda: heard.stdout == b"ready\n")
    until(lambda: len(broker_of(docker)) == 2)  # whoever looked for the image may not have ended yet
    follower, guard = broker_of(docker)

    victims = {"broker": [follower], "guard": [guard], "both at once": [follower, guard]}[victim]
    for one in victims:
        one.suspend()  # else the guard may end, its work done, before it is killed
    for one in victims:
        one.kill()

    with pytest.raises(OSError, match=r"the broker of boxes|guard"):
        box.wait(SECONDS)
    if victim == "both at once":  # the next box finds what is left
        started("true")[0].wait(SECONDS)
    until(lambda: of_folder(tmp_path) == [] and docker.containers() == [])


def test_a_box_of_which_no_process_is_known_is_ended_by_its_control_group(
    started: Run, docker: DockerHere, tmp_path: Path
) -> None:
    box, heard = started("bash", "-c", "trap '' TERM; (setsid sleep 3600 &); echo ready; sleep 3600")
    until(lambda: heard.stdout == b"ready\n")

    end_by_group("")
    assert box.wait(0.2) is None
    end_by_group(docker.containers()[0])

    assert box.wait(SECONDS) == Ended(signal=signal.SIGKILL)
    assert of_folder(tmp_path) == []


def test_a_docker_that_is_killed_takes_the_box_along(started: Run, docker: DockerHere, tmp_path: Path) -> None:
    box, heard = started("bash", "-c", "trap '' TERM; (sleep 3600) & echo ready; sleep 3600")
    until(lambda: heard.stdout == b"ready\n")

    docker.kill_docker()
    try:
        with pytest.raises(OSError, match=r"cannot go on|Docker"):
            box.wait(SECONDS)
        until(lambda: of_folder(tmp_path) == [])
        with pytest.raises(OSError, match="cannot go on"):
            started("true")
    finally:
        docker.start_docker()
    until(lambda: docker.containers() == [])

    assert started("true")[0].wait(SECONDS) == Ended(0)


def test_a_node_without_a_broker_says_so(docker: DockerHere, started: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODEWISE_BOXES", "/nowhere/boxes.sock")

    with pytest.raises(OSError, match="this node has no broker of boxes"):
        started("true")


def test_an_owner_that_is_killed_while_docker_stands_still_leaves_nothing(docker: DockerHere, tmp_path: Path) -> None:
    from tests.boxes.test_boxes import OWNER, ROOT

    script = "trap '' TERM; (setsid sleep 3600.25 &) ; echo ready; while :; do sleep 0.1; done"
    words = ["python3", "-c", OWNER, "docker", str(tmp_path), docker.image, "", "bash", "-c", script]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment) as owner:
        assert owner.stdout and owner.stdout.readline() == b"ready\n"
        docker.dockerd.send_signal(signal.SIGSTOP)
        try:
            owner.kill()
            until(lambda: of_folder(tmp_path) == [], 20.0)  # less than a call to Docker waits
        finally:
            with suppress(ProcessLookupError):
                docker.dockerd.send_signal(signal.SIGCONT)
    until(lambda: docker.containers() == [])


def test_a_box_is_ended_while_docker_stands_still_and_its_use_is_asked_for(
    started: Run, docker: DockerHere, tmp_path: Path
) -> None:
    box, heard = started("bash", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done")
    until(lambda: heard.stdout == b"ready\n")
    docker.dockerd.send_signal(signal.SIGSTOP)
    try:
        asking = threading.Thread(target=box.use)
        asking.start()
        ending = threading.Thread(target=box.end, args=(0.1,))
        ending.start()
        until(lambda: of_folder(tmp_path) == [], 30.0)  # less than a call to Docker waits
    finally:
        docker.dockerd.send_signal(signal.SIGCONT)
    ending.join(SECONDS)
    asking.join(SECONDS)

    assert box.wait(SECONDS) == Ended(signal=signal.SIGKILL)


def test_who_asks_for_the_use_of_a_box_that_ends_meanwhile_hears_so_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The broker is played: it hears what is asked for, and goes."""
    box, (ours, brokers), looked = create("docker"), socket.socketpair(), socket.socket()
    told = iter([(looked, {"there": True}), (ours, {"started": "c"})])
    monkeypatch.setattr("boxes.docker.ask", lambda *_: next(told))
    monkeypatch.setattr("boxes.docker.USE_SECONDS", 2.0 * SECONDS)
    box.start(Program(["a"], {}, tmp_path, Limits(64), Image("i", lambda _: None)), Heard())
    asking = threading.Thread(target=box.use)
    asking.start()

    with brokers:
        assert brokers.recv(1) == USE

    asking.join(SECONDS)
    assert not asking.is_alive()
