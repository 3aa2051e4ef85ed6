"""Training with processes on this machine, by the command of the manual."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hadoop.installation import ROOT
from jobs.application.package import WORKER_PYTHON
from learning.member.surroundings import VARIABLE
from tests.recipes.pages import block

Run = Callable[..., "subprocess.Popen[str]"]
COMMAND = """
from functools import partial
from jobs.kinds.train import local_run
from nodewise.__main__ import main
local_run.MemberRules = partial(local_run.MemberRules, silence_seconds={0}, suspect_seconds={0}, recall_seconds=20.0)
main()
"""
"""`nodewise`, whose runs take a member for lost only after so many seconds of silence."""
MAY_END = "may-end"
"""Once this file is there, a run that was slowed down goes on to its end."""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """run(words of `nodewise train local`): it, with the smallest program in the folder.

    Its processes may stand still a while, as they do on a busy machine; one that is killed is found by its end.
    """
    (tmp_path / "train.py").write_text(block("training-program"))
    started: list[subprocess.Popen[str]] = []

    def begin(*words: str, silence: float = 60.0) -> subprocess.Popen[str]:
        line = [sys.executable, "-c", COMMAND.format(silence), "train", "local", *words]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        started.append(
            subprocess.Popen(
                line, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        )
        return started[-1]

    yield begin
    for one in started:
        one.kill()
        one.communicate()


def losses(said: str) -> set[str]:
    """What members have found."""
    return set(re.findall(r"loss=([0-9.]+) step=50", said))


def test_three_processes_train_and_a_later_run_goes_on_from_their_checkpoint(run: Run) -> None:
    line = block("training-local").replace(".venv-worker/bin/python", str(WORKER_PYTHON))
    words = shlex.split(line)[len(("nodewise", "train", "local")) :]

    first = run(*words)
    said, _ = first.communicate(timeout=200)
    again, _ = run(*words).communicate(timeout=200)

    assert first.returncode == 0, said
    assert "generation 1 computes from step 0 on: member-0, member-1, member-2" in said
    assert len(losses(said)) == 1 and said.count("step=50") == 3
    assert "computes from step 50 on, from a checkpoint" in again
    assert losses(again) == losses(said)


def test_members_average_as_the_command_says(run: Run) -> None:
    said, _ = run("--members", "2", "--sync", "local:4", "--", str(WORKER_PYTHON), "train.py").communicate(timeout=200)

    assert said.count("sync local:4: members average after 4 steps, which is not exact") == 2
    assert len(losses(said)) == 1 and said.count("step=50") == 2


def say_without_second(run: Run, folder: Path, members: int, number: signal.Signals, **more: float) -> str:
    """What a run prints whose second member gets a signal amid it; it ends well."""
    slow_down(folder)
    started = run("--members", str(members), str(WORKER_PYTHON), "train.py", **more)
    read_until(started, "computes from step 0 on")
    os.kill(child(started, "member-1.json"), number)
    (folder / MAY_END).touch()
    said, _ = started.communicate(timeout=200)
    assert started.returncode == 0, said
    return said


def test_a_process_that_is_killed_is_told_and_the_others_go_on(run: Run, tmp_path: Path) -> None:
    said = say_without_second(run, tmp_path, 2, signal.SIGKILL)

    assert "member-1 takes part no more" in said
    assert re.search(r"generation 2 computes from step [0-9]+ on: member-0\n", said)
    assert len(losses(said)) == 1


def test_a_program_of_mxnet_finds_with_three_of_which_one_is_killed_what_it_finds_alone(
    run: Run, tmp_path: Path
) -> None:
    program = tmp_path / "train.py"
    program.write_text(in_float64(block("training-mxnet")))
    words = [WORKER_PYTHON, program]
    around = {**os.environ, "PYTHONPATH": str(ROOT)}
    alone = subprocess.run(words, env=around, capture_output=True, text=True, check=True)
    said = say_without_second(run, tmp_path, 3, signal.SIGKILL)

    groups = re.findall(r"generation [0-9]+ computes from step [0-9]+ on: (.+)\n", said)
    # Of two that stopped after different steps, the one that is ahead comes first.
    left = {"member-0", "member-2"}
    assert set(groups[-1].split(", ")) == left, "one whose death is not known yet may be asked for once more"
    assert said.count("step=50") == 2
    assert [*map(float, losses(said))] == pytest.approx([*map(float, losses(alone.stdout))], abs=1e-10)


def test_a_process_that_hangs_is_not_waited_for(run: Run, tmp_path: Path) -> None:
    said = say_without_second(run, tmp_path, 2, signal.SIGSTOP, silence=15.0)

    assert "member-1 takes part no more: silent for" in said


def test_a_program_makes_no_page_faults_for_blocks_that_it_takes_anew(run: Run, tmp_path: Path) -> None:
    (tmp_path / "blocks.py").write_text("""
import numpy, resource
def faults(times):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        [numpy.ones(1 << 20) for _ in range(8)]  # 64 MiB, or 16,384 pages
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults(1)
print("faults:", faults(10))
""")
    said, _ = run("--members", "1", "--", str(WORKER_PYTHON), "blocks.py").communicate(timeout=200)

    assert int(re.findall(r"faults: ([0-9]+)", said)[0]) < 16384


def test_too_few_that_are_left_end_the_run_with_all_that_they_started(run: Run) -> None:
    first_waits = "case $NODEWISE_TRAINING in *-0.json) sleep 600 & echo $!; wait;; esac; exit 1"
    started = run("--members", "3", "--least", "2", "--", "sh", "-c", first_waits)
    said, _ = started.communicate(timeout=200)

    assert started.returncode == 1
    assert (
        "1 of 3 processes are left before the run is done, and it needs at least 2: look at what they printed" in said
    )
    if waiting := re.search(r"member-0: ([0-9]+)", said):  # else it was ended before
        until(lambda: not is_running(int(waiting[1])))


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_no_process_outlives_a_run_that_is_ended(run: Run, number: int, status: int) -> None:
    started = run("--members", "1", "--", "sh", "-c", "echo I am $$; exec sleep 600")
    member = int(read_until(started, "I am").split()[-1])
    started.send_signal(number)

    assert started.wait(60) == status
    until(lambda: not is_running(member))


def test_two_runs_in_one_folder_are_refused(run: Run) -> None:
    line = ("--members", "1", "--", "sh", "-c", "echo begun; exec sleep 600")
    read_until(run(*line), "begun")
    second = run(*line)
    said, _ = second.communicate(timeout=200)

    assert (second.returncode, "another run uses the folder training: wait until it has ended" in said) == (1, True)


def test_who_does_not_read_what_is_printed_holds_nobody_up(run: Run, tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(program.read_text().replace("    run.step(", "    print('x' * 20_000)\n        run.step("))
    started = run("--members", "2", str(WORKER_PYTHON), "train.py")

    until(lambda: list(tmp_path.glob("training/checkpoints/50-*.state")), 120.0)
    said, _ = started.communicate(timeout=200)
    assert started.returncode == 0, said[-2000:]
    assert said.count("step=50") == 2


def test_a_program_that_leaves_its_loop_is_told_so(run: Run, tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(program.read_text().replace("    run.step(", "    if run.steps == 3: break\n        run.step("))
    started = run("--members", "2", str(WORKER_PYTHON), "train.py")
    said, _ = started.communicate(timeout=200)

    assert started.returncode == 1
    assert re.search(r"member-[01] ended with exit status 0 before .* the loop was left after step 3 of 50", said)


def in_float64(program: str) -> str:
    """So that sums of parts differ by less than what the program prints."""
    for part, instead in {
        "torch.randn(2000, 20)": "torch.randn(2000, 20).double()",
        ".float()": ".double()",
        "net.hybridize()": "net.cast('float64')",
        "{run.loss:.6f}": "{run.loss:.12f}",
    }.items():
        assert part in program
        program = program.replace(part, instead)
    return program


def slow_down(folder: Path) -> None:
    """Let each step take a while, and let the run wait amid its 50 steps for the file that lets it end."""
    program = folder / "train.py"
    waits = f"while run.steps >= 40 and not __import__('os').path.exists('{folder / MAY_END}')"
    paused = f"    __import__('time').sleep(0.05)\n        {waits}: __import__('time').sleep(0.01)\n        run.step("
    program.write_text(program.read_text().replace("    run.step(", paused))


def read_until(started: subprocess.Popen[str], words: str) -> str:
    """The first line that has these words."""
    assert started.stdout
    for line in started.stdout:
        if words in line:
            return line
    raise AssertionError(f"it never said {words!r}")


def until(holds: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it does not hold"
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def child(started: subprocess.Popen[str], name: str) -> int:
    """The process that was told this file."""
    (found,) = [int(one.name) for one in Path("/proc").glob("[0-9]*") if has(one, name, started.pid)]
    return found


def has(folder: Path, name: str, parent: int) -> bool:
    """Whether a process is a child of this one that was told this file."""
    try:
        told = (folder / "environ").read_bytes()
        status = (folder / "status").read_text()
    except OSError:
        return False
    return f"{VARIABLE}=" in told.decode(errors="replace") and name.encode() in told and f"PPid:\t{parent}\n" in status


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--sync", "often", "true"), "--sync: members cannot average by 'often': write every, auto or local:H"),
        (("--members", "1", "no-such-program"), "no-such-program cannot be started"),
        (("--members", "2", "--least", "3", "true"), "--least 3 is more than --members 2: take a smaller one"),
        (("--members", "1", "false"), "0 of 1 processes are left before the run is done"),
    ],
)
def test_what_cannot_train_is_said_in_one_sentence(run: Run, words: tuple[str, ...], said: str) -> None:
    started = run(*words)
    told, _ = started.communicate(timeout=200)

    assert started.returncode != 0
    assert said in told
    assert "Traceback" not in told
