"""The mounter of a node with real programs: one mount for all, and nothing left whatever is killed when."""

from __future__ import annotations

import fcntl
import hashlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

from boxes import create
from boxes.box import Box, Ended, Limits, Program
from boxes.mounts import mounter as limits
from boxes.mounts import request
from boxes.mounts.place import PLACE, open_own, socket_in
from boxes.mounts.protocol import MOUNTED, READING, REQUEST
from boxes.mounts.request import ask, close
from environments.squash import squash
from tests.boxes.test_boxes import ROOT, SECONDS, Heard, until
from tests.recipes.pages import block
from tests.recipes.shell import Shell

ALONE = "The environment is mounted for this program alone"
USUAL = ("-m", "boxes.mounting")
PATIENT = """
import sys
from boxes import mounting
from boxes.mounts import request
request._SECONDS = 60.0
mounting.main(sys.argv[1:])
"""
"""The same, but it waits longer for the mounter, which may stand still on a busy machine."""


def connected(folder: Path) -> socket.socket:
    """A connection to the mounter of a folder."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        with open_own(folder) as own:
            made.connect(str(socket_in(own)))
    except OSError:
        made.close()
        raise
    return made


class Mounter:
    """The mounter in a folder of the test's, as a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder.parent / "mounter.log"

    def start(self, idle_seconds: float = 600.0, prepare: str = "pass") -> subprocess.Popen[bytes]:
        program = f"{prepare}\nfrom boxes.mounts.__main__ import main\nmain()"
        argv = [sys.executable, "-c", program, str(self.folder), "--idle", str(idle_seconds)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), PLACE: str(self.folder)}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(argv, env=environment, stdin=subprocess.DEVNULL, stderr=log)
        until(lambda: self.process.poll() is not None or self.answers())
        return self.process

    def answers(self) -> bool:
        with suppress(OSError), connected(self.folder):
            return True
        return False

    def said(self) -> str:
        return self.log.read_text()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def mounter(tmp_path: Path, part: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mounter]:
    before = squashfuses(part)
    folder = tmp_path / ("a longer name than sockets may have " * 3) / "mounts"
    folder.parent.mkdir()
    monkeypatch.setenv(PLACE, str(folder))
    monkeypatch.setattr(request, "_SECONDS", 60.0)
    made = Mounter(folder)
    made.start()
    yield made
    made.kill()
    until(lambda: squashfuses(part) <= before)


def squashfuses(part: Path) -> set[int]:
    """Who serves mounts of files of this run of the tests now."""
    found, folder = set(), str(part.parents[1])
    for process in psutil.process_iter(["name", "status"]):
        if process.info["name"] == "squashfuse_ll" and process.info["status"] != psutil.STATUS_ZOMBIE:
            with suppress(psutil.Error):  # it has ended
                if any(one.path.startswith(folder) for one in process.open_files()):
                    found.add(process.pid)
    return found


def left(part: Path) -> list[psutil.Process]:
    """What stands between programs and their ends, or serves them."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and any(str(part) in word for word in process.cmdline()):
                found.append(process)
    return found


def start(part: Path, folder: Path, script: str) -> tuple[Box, Heard]:
    """A script of bash that sees the part."""
    heard, box = Heard(), create("process")
    box.start(
        Program(["bash", "-c", script], {"PATH": "/usr/bin:/bin"}, folder, Limits(64), parts={"/opt/env": part}), heard
    )
    return box, heard


def container(part: Path, script: str, begin: Sequence[str] = ("-c", PATIENT)) -> list[str]:
    """What becomes a script that sees the part, as containers of YARN do."""
    return [sys.executable, *begin, f"/opt/env={part}", "--", "bash", "-c", script]


def run(part: Path, script: str, begin: Sequence[str] = ("-c", PATIENT)) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(container(part, script, begin), capture_output=True, text=True, env=environment, check=False)


def made(folder: Path, word: str) -> Path:
    (folder / "tree").mkdir()
    (folder / "tree" / "word").write_text(word)
    squash(folder / "tree", folder / "made.sqfs")
    return folder / "made.sqfs"


def test_programs_share_one_mount(mounter: Mounter, part: Path, tmp_path: Path) -> None:
    before = squashfuses(part)
    boxes = [start(part, tmp_path, "cat /opt/env/word; stat -c %d /opt/env; read < never") for _ in range(2)]
    (tmp_path / "never").touch()
    done = run(part, "cat /opt/env/word; stat -c %d /opt/env")

    until(lambda: all(heard.stdout.count(b"\n") == 2 for _, heard in boxes))

    assert {bytes(heard.stdout) for _, heard in boxes} == {done.stdout.encode()}
    assert done.stdout.startswith("found\n")
    assert len(squashfuses(part) - before) == 1
    assert done.stderr == "" and [box.wait(SECONDS) for box, _ in boxes] == [Ended(1)] * 2


@pytest.mark.parametrize("is_shared", [True, False])
def test_the_program_is_who_it_was_and_has_nothing_more(
    mounter: Mounter, part: Path, tmp_path: Path, is_shared: bool
) -> None:
    if not is_shared:
        mounter.kill()
    script = """
    id -u; id -g; grep CapEff /proc/self/status | tr -dc 0-9; echo; echo $(ls /proc/self/fd) $1
    env | grep -c NODEWISE; grep -c ' /opt/env ' /proc/self/mounts
    touch /opt/env/more || mount -t tmpfs none /mnt || umount /opt/env || mount -o remount,rw /opt/env || echo refused
    """

    box, heard = start(part, tmp_path, script)

    assert box.wait(SECONDS) == Ended(0), heard.stderr
    lines = heard.stdout.decode().splitlines()
    assert lines == [str(os.getuid()), str(os.getgid()), "0" * 16, "0 1 2 3", "0", "1", "refused"]


def test_a_mount_is_told_by_its_file_and_not_by_its_name(mounter: Mounter, part: Path, tmp_path: Path) -> None:
    other = made(tmp_path, "another\n")
    link = tmp_path / "part.sqfs"
    link.symlink_to(part)
    assert run(link, "cat /opt/env/word").stdout == "found\n"

    link.unlink()
    other.rename(link)

    assert run(link, "cat /opt/env/word").stdout == "another\n"


def test_a_mount_goes_when_nobody_has_used_it_for_a_while(mounter: Mounter, part: Path, tmp_path: Path) -> None:
    before = squashfuses(part)
    mounter.kill()
    mounter.start(idle_seconds=0.2)
    script = "cat; cat /opt/env/word"
    with subprocess.Popen(container(part, script), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as one:
        until(lambda: squashfuses(part) - before)
        run(made(tmp_path, "another\n"), "true")
        until(lambda: "nobody uses it: 1 left" in mounter.said())
        until(lambda: len(squashfuses(part) - before) == 1)  # what served the other one ends by itself
        said, _ = one.communicate(b"")

    assert said == b"found\n"
    until(lambda: "is unmounted, because nobody uses it: 0 left" in mounter.said())
    until(lambda: squashfuses(part) <= before)
    assert run(part, "cat /opt/env/word").stdout == "found\n", "it is mounted again"


def test_who_was_killed_uses_a_mount_no_more(mounter: Mounter, part: Path) -> None:
    before = squashfuses(part)
    mounter.kill()
    mounter.start(idle_seconds=0.2)
    with subprocess.Popen(container(part, "echo; read; :"), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as one:
        assert one.stdout and one.stdout.readline() and squashfuses(part) - before
        one.kill()

    until(lambda: squashfuses(part) <= before)


def test_a_file_that_is_removed_is_let_go_with_its_last_user(mounter: Mounter, part: Path, tmp_path: Path) -> None:
    before = squashfuses(part)
    file = made(tmp_path, "short\n")
    assert run(file, "cat /opt/env/word").stdout == "short\n" and squashfuses(part) - before

    file.unlink()

    until(lambda: squashfuses(part) <= before)


def test_programs_go_on_when_the_mounter_is_killed(mounter: Mounter, part: Path, tmp_path: Path) -> None:
    before = squashfuses(part)
    os.mkfifo(tmp_path / "go")
    box, heard = start(part, tmp_path, "echo; read < go; cat /opt/env/word")
    until(lambda: heard.stdout)

    mounter.kill()
    assert run(part, "cat /opt/env/word").stdout == "found\n"
    assert ALONE in run(part, "true").stderr
    mounter.start()
    done = run(part, "cat /opt/env/word")
    (tmp_path / "go").write_text("\n")

    assert box.wait(SECONDS) == Ended(0) and heard.stdout == b"\nfound\n", heard.stderr
    assert (done.stdout, done.stderr) == ("found\n", "")
    until(lambda: len(squashfuses(part) - before) == 1)


def test_what_serves_a_mount_is_started_anew_when_it_was_killed(mounter: Mounter, part: Path, tmp_path: Path) -> None:
    before = squashfuses(part)
    os.mkfifo(tmp_path / "go")
    box, heard = start(part, tmp_path, "echo; read < go; cat /opt/env/word")
    until(lambda: heard.stdout)
    (serving,) = squashfuses(part) - before

    os.kill(serving, signal.SIGKILL)
    until(lambda: "because nothing serves it any more: 0 left" in mounter.said())
    (tmp_path / "go").write_text("\n")

    assert box.wait(SECONDS) == Ended(1) and b"/opt/env/word: Transport endpoint is not connected" in heard.stderr
    assert run(part, "cat /opt/env/word").stdout == "found\n"


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_left_whatever_is_killed_when(mounter: Mounter, part: Path, seed: int) -> None:
    draw = random.Random(seed)
    before = squashfuses(part)
    with subprocess.Popen(container(part, "cat /opt/env/word; sleep 3600"), cwd=ROOT) as one:
        time.sleep(draw.uniform(0, 0.15))
        first, second = draw.sample([mounter.process, one], 2)
        first.kill()
        time.sleep(draw.choice([0, draw.uniform(0, 0.1)]))
        second.kill()

    until(lambda: squashfuses(part) <= before and not left(part))
    assert str(part) not in Path("/proc/mounts").read_text()


def test_there_is_one_mounter_in_a_folder(mounter: Mounter) -> None:
    other = Mounter(mounter.folder)
    assert other.start().wait() == 1
    assert "another one does already" in mounter.said()


def test_a_folder_that_others_can_open_is_used_by_nobody(mounter: Mounter, part: Path) -> None:
    mounter.kill()
    mounter.folder.chmod(0o755)

    done = run(part, "cat /opt/env/word")

    assert done.stdout == "found\n" and "a folder of the user's own" in done.stderr
    assert mounter.start().wait() == 1 and "a folder of the user's own" in mounter.said()


def test_what_cannot_be_mounted_is_refused(mounter: Mounter, tmp_path: Path, part: Path) -> None:
    (tmp_path / "bad.sqfs").write_text("no part")
    with pytest.raises(OSError, match="squashfs"):
        ask([part, tmp_path / "bad.sqfs"])
    with pytest.raises(OSError, match="this is not a file"):
        ask([tmp_path])

    done = run(tmp_path / "bad.sqfs", "true")
    assert done.returncode == 125 and ALONE in done.stderr
    close(ask([part]))


def named(file: Path, folder: Path) -> Path:
    """A file by the name that environments give it, in a folder of YARN's cache."""
    place = folder / "filecache" / "10" / f"sha256-{hashlib.sha256(file.read_bytes()).hexdigest()}.sqfs"
    place.parent.mkdir(parents=True)
    return file.rename(place)


def damage(file: Path) -> None:
    """Change one byte."""
    with file.open("r+b") as content:
        content.seek(-1, os.SEEK_END)
        content.write(b"x")


def test_a_part_that_is_damaged_is_refused_by_name_and_deleted_from_the_cache(
    mounter: Mounter, part: Path, tmp_path: Path
) -> None:
    file = named(made(tmp_path, "whole\n"), tmp_path)
    copy = tmp_path / file.name
    assert run(file, "cat /opt/env/word").stdout == "whole\n"
    copy.write_bytes(file.read_bytes())
    for one in (file, copy):
        damage(one)

    done, outside = run(file, "cat /opt/env/word"), run(copy, "cat /opt/env/word")

    said = f"a part of its environment, {file.name} is damaged on this node, and "
    assert (done.returncode, done.stdout) == (outside.returncode, outside.stdout) == (125, "")
    assert f"{said}is deleted there: submit it again" in done.stderr and not file.exists()
    assert f"{said}stays there as {copy}" in outside.stderr and copy.exists()
    assert ALONE not in done.stderr + outside.stderr and "Traceback" not in done.stderr
    assert f"{file.name} is damaged" in mounter.said()


def test_a_part_is_read_once_and_nobody_else_waits_for_that(mounter: Mounter, part: Path, tmp_path: Path) -> None:
    file = named(made(tmp_path, "whole\n"), tmp_path)
    slow, reads = tmp_path / "sha256sum", tmp_path / "reads"
    slow.write_text(f"#!/bin/sh\necho x >> {reads}\nread go < {tmp_path}/go\nexec /usr/bin/sha256sum\n")
    slow.chmod(0o755)
    os.mkfifo(tmp_path / "go")
    mounter.kill()
    mounter.start(0.2, prepare=f"from boxes.mounts import content; content._READER = ({str(slow)!r},)")
    with ExitStack() as stack:
        begin = partial(subprocess.Popen, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        waiting = [stack.enter_context(begin(container(file, "cat /opt/env/word"))) for _ in range(2)]
        until(reads.exists)
        waiting[0].kill()
        time.sleep(limits._REQUEST_SECONDS + 1)  # it is not taken for one that is silent
        assert run(part, "cat /opt/env/word").stdout == "found\n", "others are answered"

        (tmp_path / "go").write_text("\n")

        assert waiting[1].communicate() == ("whole\n", "")
    until(lambda: f"{file.name} is unmounted" in mounter.said())
    assert run(file, "cat /opt/env/word").stdout == "whole\n"
    assert reads.read_text() == "x\n"
    assert "refused" not in mounter.said()


def test_no_more_files_are_read_at_once_than_somebody_waits_for(mounter: Mounter, part: Path, tmp_path: Path) -> None:
    slow, most = tmp_path / "reader", 2
    slow.write_text("#!/bin/sh\nexec sleep 3600.75\n")
    slow.chmod(0o755)
    mounter.kill()
    prepare = f"from boxes.mounts import content, mounter; content._READER = ({str(slow)!r},)"
    mounter.start(prepare=f"{prepare}; mounter.MOST_READINGS = {most}")
    files = [tmp_path / f"sha256-{number:064x}.sqfs" for number in range(5)]
    for file in files:
        file.write_bytes(part.read_bytes())

    def readers() -> list[psutil.Process]:
        return [one for one in psutil.Process(mounter.process.pid).children() if one.name() == "sleep"]

    def kill_readers() -> None:
        for one in readers():
            one.kill()

    with ExitStack() as stack:
        stack.callback(kill_readers)
        waiting = [stack.enter_context(connected(mounter.folder)) for _ in range(most)]
        for connection, file in zip(waiting, files, strict=False):
            assert answer_of(connection, file) == READING
        until(lambda: len(readers()) == most)
        another = stack.enter_context(connected(mounter.folder))
        assert answer_of(another, files[2]) == b"2 files are being read already"
        waiting[0].close()
        until(lambda: answer_of(another, files[2]) == READING)  # once it knows that nobody waits for the first any more
        another.close()
        for file in files[3:]:
            with connected(mounter.folder) as connection:
                assert answer_of(connection, file) == READING
        until(lambda: len(readers()) == most)
        assert run(part, "cat /opt/env/word").stdout == "found\n"


def answer_of(connection: socket.socket, file: Path) -> bytes:
    """The first word of the mounter on a request for a file."""
    process = os.pidfd_open(os.getpid())
    with file.open("rb") as opened:
        socket.send_fds(connection, [REQUEST], [opened.fileno(), process])
    os.close(process)
    connection.settimeout(SECONDS)
    return connection.recv(1024)


def test_strange_requests_and_silence_do_no_harm(mounter: Mounter, part: Path) -> None:
    mounter.kill()
    mounter.start(prepare="from boxes.mounts import mounter; mounter._REQUEST_SECONDS = 600.0")
    with part.open("rb") as file:
        for words, sent in ((b"mount", []), (b"mount", [file.fileno()] * 2), (b"x" * 60_000, [file.fileno()])):
            with connected(mounter.folder) as asked:
                socket.send_fds(asked, [words], sent)
                assert MOUNTED not in socket.recv_fds(asked, 1024, 1)[0]
    with ExitStack() as stack:
        silent = [stack.enter_context(connected(mounter.folder)) for _ in range(limits.MOST_CONNECTIONS)]
        with pytest.raises(OSError, match="the mounter has hung up"):
            ask([part])
        mounter.kill()
        mounter.start()  # with its usual patience
        silent = [stack.enter_context(connected(mounter.folder)) for _ in range(limits.MOST_CONNECTIONS)]
        until(lambda: all(one.recv(1) == b"" for one in silent))

    descriptors = len(os.listdir(f"/proc/{mounter.process.pid}/fd"))  # noqa: PTH208
    close(ask([part]))
    assert descriptors < 20


def test_the_mounter_of_the_page_needs_only_a_bare_python(
    part: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = (ROOT / "boxes/systemd/nodewise-mounts.service").read_text()
    assert "/usr/bin/python3 -I -S /usr/local/lib/nodewise/mounts.pyz /run/nodewise-mounts\n" in unit
    assert "KillMode=process\n" in unit
    shell = Shell(tmp_path / "home", tmp_path / "work")
    shell.run(block("env-mounts"))
    monkeypatch.setenv(PLACE, str(tmp_path / "mounts"))
    # A test that runs as root needs CAP_SETFCAP to be root in a namespace; no other user needs it.
    words = ["setpriv", "--no-new-privs", *(["--bounding-set=-all,+setfcap"] if not os.getuid() else [])]
    words += ["/usr/bin/python3", "-I", "-S", "mounts.pyz"]
    with subprocess.Popen([*words, str(tmp_path / "mounts")], cwd=shell.folder) as mounter:
        until(Mounter(tmp_path / "mounts").answers)
        done = run(part, "cat /opt/env/word")
        mounter.terminate()

    assert (done.stdout, done.stderr, mounter.returncode) == ("found\n", "", 0)
    assert not (tmp_path / "mounts" / "socket").exists()


def test_a_mounter_that_does_not_answer_is_not_waited_for(mounter: Mounter, part: Path) -> None:
    mounter.process.send_signal(signal.SIGSTOP)

    done = run(part, "cat /opt/env/word", USUAL)

    assert done.stdout == "found\n" and "has not answered within 5 s" in done.stderr


def test_one_that_is_asked_whether_it_serves_as_it_begins_serves(mounter: Mounter) -> None:
    mounter.kill()
    with (mounter.folder / "lock").open() as asked:
        fcntl.flock(asked, fcntl.LOCK_SH)
        threading.Timer(0.5, lambda: fcntl.flock(asked, fcntl.LOCK_UN)).start()
        mounter.start(prepare="import boxes.mounts.__main__ as own; own._ASKED_SECONDS = 60.0")

        assert mounter.process.poll() is None and mounter.answers(), mounter.said()


def test_a_mounter_that_does_not_end_reading_is_not_waited_for(
    part: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "silent").mkdir(mode=0o700)
    monkeypatch.setenv(PLACE, str(tmp_path / "silent"))
    monkeypatch.setattr(request, "_READING_SECONDS", 1.0)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener, ThreadPoolExecutor(1) as pool:
        with open_own(tmp_path / "silent") as own:
            listener.bind(str(socket_in(own)))
        listener.listen()
        asking = pool.submit(ask, [part])
        connection, _ = listener.accept()
        with connection:
            connection.send(READING)
            with pytest.raises(OSError, match="has not answered within 1 s"):
                asking.result(SECONDS)


def test_a_root_is_a_mount_of_the_mounter(mounter: Mounter, root: Path, tmp_path: Path) -> None:
    heard, box = Heard(), create("process")
    program = Program(["sh", "-c", "cat /etc/issue"], {"PATH": "/bin"}, tmp_path, Limits(64), parts={"/": root})

    box.start(program, heard)

    assert box.wait(SECONDS) == Ended(0)
    assert heard.stdout == b"another system\n"
    assert "root.sqfs is mounted" in mounter.said()
