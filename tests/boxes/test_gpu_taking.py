"""Cards are given to one program at a time: by real locks to real processes that race and are killed."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from boxes.box import BoxError
from boxes.gpus import nvidia_smi
from boxes.gpus.cards import Card, Wanted
from boxes.gpus.locks import Locks
from boxes.gpus.taking import Taken, take_cards
from tests.boxes.played_gpus import PlayedGpus, uuid

ROOT = Path(__file__).resolve().parents[2]
T4 = "Tesla T4, 15360, {}, 7.5"
RACES = """
import os, sys, time
from pathlib import Path
from boxes.gpus.cards import Wanted
from boxes.gpus.taking import take_cards

with take_cards(Wanted(int(sys.argv[2])), seconds=240) as mine:
    for card in mine.cards:  # fails if another one uses it
        with Path(sys.argv[1], card.uuid).open("x") as file:
            file.write(f"{card.uuid}, {os.getpid()}\\n")
    time.sleep(0.02)
    for card in mine.cards:
        Path(sys.argv[1], card.uuid).unlink()
print(len({card.uuid for card in mine.cards}))
"""
HOLDS = """
import subprocess, time
from boxes.gpus.cards import Wanted
from boxes.gpus.taking import take_cards

with take_cards(Wanted(1)) as mine:
    child = subprocess.Popen(["sleep", "600"], close_fds=False, stdout=subprocess.DEVNULL)
    print(child.pid, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlayedGpus:
    made = PlayedGpus(tmp_path / "gpus")
    for name, value in made.variables.items():
        monkeypatch.setenv(name, value)
    return made


def start(script: str, *words: str) -> subprocess.Popen[str]:
    """A process of its own that runs a script."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def refusal(wanted: Wanted, seconds: float = 0.0) -> str:
    """Why cards are not given."""
    with pytest.raises(BoxError) as refused, take_cards(wanted, seconds=seconds):
        pass
    return str(refused.value)


def test_of_fifty_that_race_none_has_a_card_that_another_has_and_all_get_theirs(gpus: PlayedGpus) -> None:
    gpus.have(*[T4.format(free) for free in (15000, 14000, 13000, 12000)])
    counts = [1 + number % 3 for number in range(50)]

    racers = [start(RACES, str(gpus.busy), str(count)) for count in counts]
    ended = [one.communicate(timeout=280) for one in racers]

    assert [one.returncode for one in racers] == [0] * 50, [err for _, err in ended if err]
    assert [int(out) for out, _ in ended] == counts


def test_the_cards_with_most_free_memory_are_taken_first_and_the_program_sees_these_alone(gpus: PlayedGpus) -> None:
    gpus.have(T4.format(100), T4.format(15000), T4.format(9000), "NVIDIA H100, 81559, 81000, 9.0")

    with take_cards(Wanted(2, model="T4")) as mine, take_cards(Wanted(1, capability="7.5")) as other:
        assert [card.index for card in mine.cards] == [1, 2]
        names = f"{uuid(1)},{uuid(2)}"
        assert mine.variables == {"CUDA_VISIBLE_DEVICES": names, "NVIDIA_VISIBLE_DEVICES": names}
        assert mine.text == "1 (Tesla T4), 2 (Tesla T4)"
        assert [card.index for card in other.cards] == [3]
        said = refusal(Wanted(2))
        assert said.startswith(
            "its GPUs were not free within 0 s: 1 of 2 is free, a task or job has GPU 3, a task or job has GPU 1"
        )
    with take_cards(Wanted(4)) as mine:
        assert len(mine.cards) == 4, "all were given back, what was held in vain, too"


def test_a_program_that_wants_none_needs_neither_cards_nor_their_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVIDIA_SMI", "/nowhere/nvidia-smi")
    monkeypatch.setenv("NODEWISE_GPU_LOCKS", "/nowhere")

    with take_cards(Wanted()) as mine:
        assert (mine, mine.variables) == (Taken(), {})


def test_what_strangers_use_is_not_given_until_they_have_ended(gpus: PlayedGpus) -> None:
    gpus.have(T4.format(15000), T4.format(100))
    gpus.use({0: [4711, 4712]})
    said: list[str] = []

    with take_cards(Wanted(1)) as mine:
        assert [card.index for card in mine.cards] == [1], "though the other has more free"

    def pause(_: float) -> None:
        gpus.use({})

    with take_cards(Wanted(2), pause, said.append) as mine:
        assert len(mine.cards) == 2
    assert said == ["waiting for GPUs: 1 of 2 is free, process 4711, which is not of a task or job, uses GPU 0"]
    gpus.use({0: [1], 1: [2]})
    refused = refusal(Wanted(1))
    assert "within 0 s: none of 1 is free, process 1, which is not of a task or job, uses GPU 0, process 2" in refused


def test_who_gives_up_waiting_holds_nothing(gpus: PlayedGpus) -> None:
    gpus.have(T4.format(15000), T4.format(100))
    gpus.use({0: [4711]})

    def pause(_: float) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError), take_cards(Wanted(2), pause):
        pass
    with take_cards(Wanted(1)) as mine:
        assert [card.index for card in mine.cards] == [1]


def test_a_holder_that_is_killed_frees_its_card_though_its_child_goes_on(gpus: PlayedGpus) -> None:
    gpus.have(T4.format(15000))
    with start(HOLDS) as holder:
        assert holder.stdout
        child = int(holder.stdout.readline())
        try:
            assert "none of 1 is free, a task or job has GPU 0" in refusal(Wanted(1))
            holder.kill()
            holder.wait()
            os.kill(child, 0)
            with take_cards(Wanted(1), seconds=0) as mine:
                assert [card.index for card in mine.cards] == [0]
        finally:
            os.kill(child, signal.SIGKILL)


def test_who_takes_for_too_long_does_not_hold_up_others_for_ever(gpus: PlayedGpus) -> None:
    gpus.have(T4.format(15000))
    locks = Locks(gpus.locks)
    turn = locks.try_to_lock("nodewise-gpus")
    assert turn is not None

    assert refusal(Wanted(1), 0.2).startswith("its GPUs were not free within 0.2 s: others are taking theirs")
    os.close(turn)
    with take_cards(Wanted(1)):
        pass


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("#!/bin/sh\necho 'No devices were found'; exit 6\n", "ends with 6 and tells nothing of the GPUs: No devices"),
        ("#!/bin/sh\nexec sleep 600\n", "does not tell of the GPUs within 0.2 s"),
        ("#!/nowhere/sh\n", "cannot be run: No such file or directory: GPUs need NVIDIA's driver"),
        ("#!/bin/sh\nexit 0\n", "it has no GPUs, and 1 is asked for: ask for fewer GPUs, or for others"),
    ],
)
def test_a_machine_that_tells_of_no_cards_says_so(
    gpus: PlayedGpus, script: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "sleep" in script:  # the others have as long as they need
        monkeypatch.setattr(nvidia_smi, "SECONDS", 0.2)
    gpus.tool.write_text(script)

    assert sentence in refusal(Wanted(1))


def test_drivers_that_know_no_compute_capability_give_cards_where_none_is_asked_for(gpus: PlayedGpus) -> None:
    gpus.have("Tesla K80, 11441, 11000, 3.7")
    (gpus.folder / "old").touch()

    with take_cards(Wanted(1, memory_mb=11000)) as mine:
        assert [(card.model, card.capability, card.free_mb) for card in mine.cards] == [("Tesla K80", "", 11000)]
    assert "Tesla K80, tells no compute capability, not 3.5" in refusal(Wanted(1, capability="3.5"))


def test_of_what_the_tool_tells_only_rows_of_cards_count(gpus: PlayedGpus) -> None:
    row = f"3, {uuid(3)}, Model, with a comma, 11441, [N/A], [N/A]"
    (gpus.folder / "cards").write_text(
        f"{row}\nUnable to determine the device handle: GPU is lost\n4, ../x, A, 1, 1, 7.5\n"
    )

    assert nvidia_smi.list_cards() == [Card(3, "Model, with a comma", 11441, "", uuid(3), 0)]


def test_everybody_can_open_a_lock_whatever_the_umask_and_nothing_else_is_left(gpus: PlayedGpus) -> None:
    gpus.have(T4.format(15000))
    before = os.umask(0o077)
    try:
        with take_cards(Wanted(1)):
            pass
    finally:
        os.umask(before)

    files = sorted(gpus.locks.iterdir())
    assert [file.name for file in files] == ["nodewise-gpus", f"nodewise-gpus.{uuid(0)}"]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o644}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_finds_a_card_held_and_takes_it_afterwards(tmp_path: Path) -> None:
    locks = Locks(Path("/run/lock"))
    name = f"nodewise-test-{os.getpid()}"
    held = locks.try_to_lock(name)
    assert held is not None
    handle: int = held

    def as_nobody() -> int:
        """1 when it gets the lock, 0 when it is held, 2 when it fails."""
        pid = os.fork()
        if pid == 0:
            try:
                os.close(handle)
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                os._exit(Locks(Path("/run/lock")).try_to_lock(name) is not None)
            finally:
                os._exit(2)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    try:
        assert as_nobody() == 0
        os.close(handle)
        handle = os.open(os.devnull, os.O_RDONLY)
        assert as_nobody() == 1
    finally:
        os.close(handle)
        Path("/run/lock", name).unlink()


def test_links_pipes_and_folders_that_all_may_change_are_refused(gpus: PlayedGpus, tmp_path: Path) -> None:
    gpus.have(T4.format(15000))
    secret = tmp_path / "secret"
    secret.touch()
    place = gpus.locks / f"nodewise-gpus.{uuid(0)}"
    place.symlink_to(secret)
    assert refusal(Wanted(1)).startswith(f"{place} is a link: the locks of GPUs need a folder like /run/lock")
    place.unlink()
    os.mkfifo(place)
    assert refusal(Wanted(1)).startswith(f"{place} is not a file: ")
    place.unlink()
    gpus.locks.chmod(0o777)
    assert "lets everybody delete the files of others" in refusal(Wanted(1))
    gpus.locks.rename(tmp_path / "moved")
    gpus.locks.symlink_to(tmp_path / "moved")
    assert "is not a folder that this user may open: Not a directory" in refusal(Wanted(1))


def test_a_lock_that_was_exchanged_before_it_was_held_does_not_count(
    gpus: PlayedGpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = Locks(gpus.locks)
    taken_away: list[Path] = []

    def lock(handle: int, how: int) -> Any:
        if not taken_away:
            taken_away.append((gpus.locks / "one").rename(gpus.locks / "away"))
        return flock(handle, how)

    flock = fcntl.flock
    monkeypatch.setattr(fcntl, "flock", lock)
    with ExitStack() as held:
        handle = locks.try_to_lock("one")
        assert handle is not None
        held.callback(os.close, handle)
        assert os.path.samestat(os.fstat(handle), (gpus.locks / "one").stat())
        assert locks.try_to_lock("one") is None


def test_the_tool_is_not_asked_more_often_than_once_a_second(gpus: PlayedGpus) -> None:
    gpus.have(T4.format(15000))
    gpus.use({0: [4711]})
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError), take_cards(Wanted(1), pause):
        pass

    assert min(pauses) >= 1.0
