"""Runs as forks of the template, beside the same runs with a Python of their own."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from collectors.agent import launch
from collectors.agent.run import fork, template
from collectors.agent.run.child import Child
from collectors.agent.run.template import Template
from collectors.agent.run.trust import Pushed
from collectors.agent.settings import Settings
from infosvc.shipping.bundle import build
from infosvc.wire.client import InfoClient
from infosvc.wire.records import Producer, Slot
from tests.collectors.conftest import NoGuard, wait_for

pytestmark = pytest.mark.timeout(900)

PROCESSORS = Path(__file__).resolve().parents[2] / "collectors" / "processors"
SEEN = """
import json, os, resource, sys
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
kinds = ("CPU", "AS", "NOFILE", "NPROC", "CORE", "STACK")
descriptors = {}
for number in os.listdir("/proc/self/fd"):
    try:
        descriptors[number] = os.readlink(f"/proc/self/fd/{number}").partition(":[")[0]
    except OSError:
        pass
mask = os.umask(0)
print(json.dumps({
    "arguments": [sys.argv, sys.orig_argv, open("/proc/self/cmdline").read().strip("\\0")],
    "descriptors": descriptors,
    "environment": [dict(os.environ), sorted(open("/proc/self/environ").read().strip("\\0").split("\\0"))],
    "flags": repr(sys.flags),
    "input": sys.stdin.read(),
    "leads": [os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid()],
    "limits": {kind: resource.getrlimit(getattr(resource, f"RLIMIT_{kind}")) for kind in kinds},
    "main": sorted(vars(sys.modules["__main__"])),
    "path": sys.path,
    "place": [os.getcwd(), mask],
    "status": {key: status[key] for key in
               ("Uid", "Gid", "Groups", "NoNewPrivs", "Seccomp", "SigBlk", "SigIgn", "SigCgt", "Threads")},
    "streams": [[one.encoding, one.errors, one.line_buffering, one.seekable()] for one in (sys.stdout, sys.stderr)],
}))
"""
ENDS = {
    "well": "print('1')",
    "by_number": "import sys; print('2'); sys.exit(3)",
    "by_words": "import sys; sys.exit('why')",
    "badly": "def inner():\n    raise ValueError('why')\ninner()",
    "badly_twice": "try:\n    {}['a']\nexcept KeyError as error:\n    raise RuntimeError('why') from error",
    "no_python": "print('3'\n",
    "not_text": "print('\\udcff\\u00e9')",
    "interrupted": "raise KeyboardInterrupt",
    "by_signal": "import os; print('4', flush=True); os.kill(os.getpid(), 15)",
    "by_nothing": "import sys; print('a'); sys.exit()",
    "by_a_large_number": "import sys; sys.exit(256 + 5)",
    "by_less_than_nothing": "import sys; sys.exit(-1)",
    "by_a_truth": "import sys; sys.exit(True)",
    "with_a_word_of_what_is_left": "class A:\n    def __del__(self): print('gone')\nkept = [A()]; kept.append(kept)",
    "redirected": "import io, sys; print('a'); sys.stdout = io.StringIO(); print('b')",
    "with_its_output_closed": "import sys; print('a'); sys.stdout.close()",
    "badly_at_exit": "import atexit; atexit.register(lambda: 1 / 0); print('a')",
    "at_once": "import os; print('lost'); os._exit(7)",
    "closed": "import os; os.close(1); print('5')",
    "at_exit": "import atexit, sys; atexit.register(print, 'last'); sys.exit(2)",
    "in_a_thread": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), print('6'))).start()",
    "unwritten": "kept = open('kept', 'w'); kept.write('7'); print(open('/proc/self/stat').read() != '')",
    "imports": "import infosvc.wire.task_client, sqlite3, email.mime.text; print(__name__, __file__[:14])",
    "future": "def f(a: x): pass\nprint('8')",  # a NameError, unless annotations are of the future
}
LEAVES = "import json, os, random\nfrom infosvc.wire import connection\n" + (
    "print(getattr(json, 'left', 0), os.environ.get('LEFT', 0), random.random(), connection._CHANCE.random())\n"
    "json.left = os.environ['LEFT'] = '1'\n"
)
SEARCHES = """
import re
found = 0
with open("/proc/self/mem", "rb", 0) as memory:
    for line in open("/proc/self/maps"):
        first, past = (int(end, 16) for end in line.split()[0].split("-"))
        if line.split()[1].startswith("r"):
            try:
                memory.seek(first)
                found += len(re.findall(b"word" + b"-of-[0-9]", memory.read(past - first)))
            except OSError:  # what the kernel lends
                pass
print(found)
"""
ESCAPES = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open(sys.argv[1], "w").write(f"{os.getpid()}\\n")
time.sleep(300)
"""


class Ended(NamedTuple):
    """What a run has left."""

    status: int
    stdout: str
    stderr: str


class Noting(Template):
    """A template that notes of each run whether it became a fork, and can be told to fork nothing."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.forked: list[bool] = []
        self.rests = False

    def fork(self, order: fork.Order, stdout: int, stderr: int) -> template.Forked | None:
        found = None if self.rests else super().fork(order, stdout, stderr)
        self.forked.append(found is not None)
        return found


class Runs:
    """The programs of this module as they are pushed, and the two ways to run them."""

    def __init__(self, place: Path) -> None:
        own = place / "own" / "processors"
        own.mkdir(parents=True)
        for name, text in {"seen": SEEN, "leaves": LEAVES, "escapes": ESCAPES, "searches": SEARCHES, **ENDS}.items():
            (own / f"{name}.py").write_text(text)
        bundle = build(place / "files", own.parent)
        settings = Settings(
            "n1", "127.0.0.1", 1, "http://127.0.0.1:9", "/no/token", str(bundle.directory), str(place / "state")
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(launch, "Template", Noting)
            self.launcher = launch.Launcher(settings, Pushed.load(bundle.directory), NoGuard())
        self.template: Any = self.launcher._template
        self.state = place / "state"

    def start(self, name: str, *arguments: str, **more: Any) -> Child:
        """A run that becomes a fork if there is a template by now."""
        self.template.rests = False
        return self.launcher.start(Slot(name, " ".join([f"processors/{name}.py", *arguments]), 5, 60, **more))

    def fork(self, name: str, *arguments: str) -> Child:
        """A run that is a fork."""
        wait_for(lambda: finish(self.start("well")) and self.template.forked[-1])
        child = self.start(name, *arguments)
        assert self.template.forked[-1]
        return child

    def plain(self, name: str, *arguments: str) -> Child:
        """A run that has a Python of its own."""
        self.template.rests = True
        return self.launcher.start(Slot(name, " ".join([f"processors/{name}.py", *arguments]), 5, 60))

    @property
    def template_pid(self) -> int:
        """The process of which forks are."""
        return int(self.template._process.pid)


def finish(child: Child) -> Ended:
    wait_for(child.has_finished)
    said = re.sub("0x[0-9a-f]+", "0x", child.stderr.decode())  # where something lay in memory
    return Ended(child.status, child.stdout.decode("utf-8", "surrogateescape"), said)


def is_alive(pid: int) -> bool:
    """Whether the process still does anything: a zombie does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def number_in(file: Path) -> int:
    """The number of a whole line; 0 while there is none."""
    text = file.read_text() if file.exists() else ""
    return int(text) if text.endswith("\n") else 0


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    made = Runs(tmp_path_factory.mktemp("runs"))
    yield made
    made.launcher.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A template that is gone is replaced at once, and one that is slow is waited for, as the machine may be busy."""
    monkeypatch.setattr(template, "RETRY_SECONDS", 0)
    monkeypatch.setattr(template, "ANSWER_SECONDS", 60.0)


def test_a_fork_sees_of_itself_what_a_program_with_its_own_python_sees(runs: Runs) -> None:
    other = runs.fork("escapes", str(runs.state / "other"))  # what is open for it must not be open in the next
    forked, plain = (finish(start("seen", "a", "b c")) for start in (runs.fork, runs.plain))
    other.kill()
    finish(other)

    assert (forked.status, forked.stderr) == (plain.status, plain.stderr) == (0, "")
    assert json.loads(forked.stdout) == json.loads(plain.stdout)
    seen = json.loads(forked.stdout)
    assert seen["limits"]["CPU"] == [120, 120]
    assert set(seen["descriptors"].values()) == {"/dev/null", "pipe", "/memfd:program (deleted)"}
    assert "SECRET_OF_THE_LOGIN" not in seen["environment"][0]


@pytest.mark.parametrize("name", ENDS)
def test_a_fork_ends_as_a_program_with_its_own_python_does(runs: Runs, name: str) -> None:
    forked, plain = finish(runs.fork(name)), finish(runs.plain(name))

    assert forked == plain
    assert forked != Ended(0, "", "")


def test_what_a_program_writes_and_does_not_close_is_written(runs: Runs) -> None:
    finish(runs.fork("unwritten"))

    assert (runs.state / "unwritten" / "kept").read_text() == "7"


def test_a_fork_sees_nothing_that_another_one_has_left(runs: Runs) -> None:
    seen = [finish(runs.fork("leaves")).stdout.split() for _ in range(2)]

    assert [one[:2] for one in seen] == [["0", "0"], ["0", "0"]]
    assert not set(seen[0][2:]) & set(seen[1][2:])


def test_a_fork_finds_nothing_of_other_orders_in_its_memory(runs: Runs) -> None:
    words = [f"word-of-{number}" for number in range(2000)]  # so long that what comes next does not cover it
    finish(runs.fork("well", *words))

    assert int(finish(runs.fork("searches", *words)).stdout) > 0
    finish(runs.fork("well", *words))
    assert finish(runs.fork("searches")).stdout == "0\n"


def test_what_left_the_group_of_a_fork_is_found_by_its_mark(runs: Runs) -> None:
    child = runs.fork("escapes", str(runs.state / "escaped"))
    escaped = wait_for(lambda: number_in(runs.state / "escaped"))
    assert is_alive(escaped)
    child.kill()
    assert finish(child).status == -signal.SIGKILL

    wait_for(lambda: not is_alive(escaped))


def test_a_template_that_is_killed_is_replaced_and_its_forks_have_failed(runs: Runs) -> None:
    child = runs.fork("escapes", str(runs.state / "orphan"))
    orphan = wait_for(lambda: number_in(runs.state / "orphan"))
    killed = runs.template_pid
    os.kill(killed, signal.SIGKILL)

    assert finish(child).status == -signal.SIGKILL
    wait_for(lambda: not is_alive(orphan))
    assert finish(runs.start("well")).stdout == "1\n"
    assert finish(runs.fork("well")).stdout == "1\n"
    assert runs.template_pid != killed


def test_a_template_that_does_not_answer_is_ended_and_the_run_has_its_own_python(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish(runs.fork("well"))
    stopped = runs.template_pid
    runs.template._process._channel.settimeout(0.2)
    monkeypatch.setattr(template, "ANSWER_SECONDS", 0.2)
    os.kill(stopped, signal.SIGSTOP)

    assert finish(runs.start("well")).stdout == "1\n"
    assert not runs.template.forked[-1]
    wait_for(lambda: not is_alive(stopped))


def test_a_template_that_cannot_fork_now_goes_on_and_so_does_what_runs(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    full = tmp_path / "full"
    source = f"""
import os, pathlib
fork = os.fork
def fork_if_there_is_room():
    if pathlib.Path({str(full)!r}).exists():
        raise BlockingIOError(11, "no room")
    return fork()
os.fork = fork_if_there_is_room
"""
    runs.template.close()
    monkeypatch.setattr(template, "_SOURCE", source + template._SOURCE)
    other = runs.fork("escapes", str(runs.state / "beside"))
    forking = runs.template_pid
    wait_for(lambda: number_in(runs.state / "beside"))  # it forks, too
    full.touch()

    assert finish(runs.start("well")).stdout == "1\n"
    assert not runs.template.forked[-1]
    full.unlink()
    assert finish(runs.start("well")).stdout == "1\n"
    assert runs.template.forked[-1]
    assert runs.template_pid == forking and not other.has_finished()
    other.kill()
    finish(other)
    runs.template.close()


def test_an_agent_without_descriptors_keeps_its_template_and_what_runs(runs: Runs) -> None:
    other = runs.fork("escapes", str(runs.state / "held"))
    forking = runs.template_pid
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(file.name) for file in Path("/proc/self/fd").iterdir())
    taken = [os.dup(2)]
    while taken[-1] < highest:
        taken.append(os.dup(2))
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(taken) + 1 + 4, limits[1]))  # two pipes, and nothing more
    try:
        with pytest.raises(OSError, match="Too many open files"):
            runs.start("well")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for number in taken:
            os.close(number)

    assert runs.template_pid == forking and not other.has_finished()
    assert finish(runs.start("well")).stdout == "1\n"
    assert runs.template.forked[-1]
    other.kill()
    finish(other)


def test_an_order_that_is_too_long_for_the_template_is_a_run_with_its_own_python(runs: Runs) -> None:
    finish(runs.fork("well"))
    emits = tuple(f"well.{number:0100}" for number in range(1000))

    assert finish(runs.start("well", emits=emits)).stdout == "1\n"
    assert not runs.template.forked[-1]


def test_a_run_that_cannot_become_a_fork_says_what_it_says_without(runs: Runs, caplog: Any) -> None:
    finish(runs.fork("well"))
    folder = runs.state / "well"
    folder.rename(runs.state / "moved")
    order = runs.template_pid
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Path, "mkdir", lambda *_, **__: None)
            with pytest.raises(FileNotFoundError):
                runs.start("well")
    finally:
        (runs.state / "moved").rename(folder)

    assert "No such file" in caplog.text
    assert finish(runs.fork("well")).stdout == "1\n"
    assert runs.template_pid == order


def test_a_template_that_cannot_work_says_why_and_runs_go_on(
    runs: Runs, caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(template, "_SOURCE", "raise SystemExit('no room here')")
    runs.template.close()
    assert finish(runs.start("well")).stdout == "1\n"
    monkeypatch.setattr(template, "RETRY_SECONDS", 600)

    wait_for(lambda: finish(runs.start("well")).stdout == "1\n" and "no room here" in caplog.text)
    assert finish(runs.start("well")).stdout == "1\n"
    assert not runs.template.forked[-1]
    assert caplog.text.count("no room here") == 1


def test_the_template_of_an_agent_knows_no_secret_and_neither_it_nor_its_forks_outlive_the_agent(
    node: Any, service: InfoClient, tmp_path: Path
) -> None:
    own = tmp_path / "own" / "processors"
    own.mkdir(parents=True)
    (own / "parent.py").write_text("import os; print(os.getppid())")
    (own / "escapes.py").write_text(ESCAPES)
    node.configure(directory=str(build(tmp_path / "files", own.parent).directory))
    start(service, "parent", "processors/parent.py", 0.2)
    node.launch()
    agent = node.pid
    of_runs = wait_for(lambda: next((pid for pid in numbers(service, "parent") if pid != agent), None))
    start(service, "escapes", f"processors/escapes.py {node.base}/escaped", 600)
    escaped = wait_for(lambda: number_in(node.base / "escaped"))

    secrets = (node.token.encode(), b"SECRET_OF_THE_LOGIN")
    assert [secret in memory_of(agent) for secret in secrets] == [True, True]
    assert [secret in memory_of(of_runs) for secret in secrets] == [False, False]
    os.kill(agent, signal.SIGKILL)
    wait_for(lambda: not any(map(is_alive, (agent, of_runs, escaped))))


def start(service: InfoClient, name: str, cmd: str, interval: float) -> None:
    service.put_producer(Producer(name, cmd, interval, timeout=600, ttl=600))
    service.put_slot("n1", name, running=True)


def numbers(service: InfoClient, name: str) -> list[int]:
    return [int(datum.number()) for datum in service.data(name, node="n1") if datum.data_value]


def memory_of(pid: int) -> bytes:
    """All that a process can read of its own."""
    found = []
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, modes = line.split()[:2]
            first, past = (int(end, 16) for end in span.split("-"))
            if modes.startswith("r"):
                with suppress(OSError):  # what the kernel lends
                    memory.seek(first)
                    found.append(memory.read(past - first))
    return b"".join(found)


@pytest.mark.parametrize("name", sorted(path.stem for path in PROCESSORS.glob("[!_]*.py")))
def test_the_template_has_imported_what_the_programs_that_ship_import(name: str) -> None:
    program = (
        "import importlib, sys; sys.path.insert(0, sys.argv[1]); from collectors.agent.run import fork\n"
        "for name in (*fork.PRELOADED, 'collectors.processors'): importlib.import_module(name)\n"
        "before = set(sys.modules); importlib.import_module(sys.argv[2]); print(sorted(set(sys.modules) - before))"
    )
    module = f"collectors.processors.{name}"
    command = [sys.executable, "-P", "-S", "-c", program, str(PROCESSORS.parents[1]), module]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)

    assert ran.stdout == f"{[module]}\n"
