"""Stands between a process and the program that it runs, as a process of its own, so that no program is left behind.

`boxes.process` starts it as `python -c` with the text of this file: it needs only Python, wherever the code lies. The
order comes on its standard input, as a line of JSON, and then a letter for each wish; end of file says that the owner
is gone, however it ended. On the file descriptor `report` of the order it tells, in lines of JSON, that the program has
started or why not, and how it ended and what it used.

The keeper has a process group of its own, so that a kill of its owner's group leaves it for a moment. Its program is in
the owner's group, where YARN's kill reaches it; one that has the file descriptor `terminal` of the order for its
terminal leads a session of its own. It gets the `descriptors` of the order as 3, 4 and so on. The kernel gives the
keeper what the program leaves behind, in whatever group or session, and kills the program when the keeper dies.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import select
import signal
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

SOFTLY, HARDLY = b"T", b"K"
FIRST = 3
"""The first descriptor that is no standard stream."""
_SET_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36
_END_SECONDS = 10.0
"""How long what was killed may take to be gone: a process that waits for a broken disk does not die."""
_PAUSE_SECONDS = 0.005
_AGAIN_SECONDS = 0.02
"""How soon a program that could not get its signal yet is looked at again."""
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SETTABLE = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
_LIBC = ctypes.CDLL(None, use_errno=True)


class Keeper:
    """Keeps the program of one order."""

    def __init__(self, order: Mapping[str, Any], wishes: bytes) -> None:
        self._order = order
        self._wishes = wishes
        self._status: int | None = None
        self._is_untold = False
        self._terminal: int | None = order["terminal"]
        for descriptor in (order["report"], *order["descriptors"]):
            os.set_inheritable(descriptor, False)
        _LIBC.prctl(_SET_CHILD_SUBREAPER, 1)
        self._group = os.getpgrp()
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        os.setpgid(0, 0)
        self._woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def run(self) -> None:
        """Start the program, do as the owner wishes until it has ended, and end what it left behind."""
        self._program, refused = self._start()
        self._leave_output()
        if refused:
            self._report(refused)
            return
        self._report({"started": self._program})
        while self._status is None and self._obey():
            self._reap()
        self._end_all()
        self._report({"ended": self._status, "used": _used()})

    def _start(self) -> tuple[int, dict[str, Any]]:
        """The program's process id, and why it does not run, if it does not."""
        told, tell = os.pipe()
        keeper = os.getpid()
        program = os.fork()
        if program == 0:
            self._become(keeper, tell)
        for ours in (tell, *self._order["descriptors"]):
            os.close(ours)
        with os.fdopen(told, "rb") as why:
            said = why.read()
        return program, json.loads(said) if said else {}

    def _become(self, keeper: int, tell: int) -> NoReturn:
        """The program, in the new process; the pipe `tell` is closed by that."""
        try:
            self._join_group()
            _LIBC.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
            if os.getppid() != keeper:
                os._exit(1)
            for number in _SETTABLE:  # those that were ignored before us, too, as in the background of a shell
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            self._take_input()
            os.chdir(self._order["folder"])
            argv = self._order["argv"]
            tell = fcntl.fcntl(tell, fcntl.F_DUPFD_CLOEXEC, FIRST + len(self._order["descriptors"]))
            hand_on(self._order["descriptors"])
            os.execvpe(argv[0], argv, self._order["environment"])  # noqa: S606 it is this process that becomes it
        except (OSError, ValueError) as error:
            os.write(tell, json.dumps({"refused": getattr(error, "errno", None), "said": str(error)}).encode())
        os._exit(127)

    def _join_group(self) -> None:
        """Be in the owner's group, or lead a session if there is a terminal."""
        if self._terminal is None:
            os.setpgid(0, self._group)
            return
        os.setsid()
        fcntl.ioctl(self._terminal, termios.TIOCSCTTY, 0)

    def _take_input(self) -> None:
        """Read from the terminal and write to it; without one, read nothing."""
        if self._terminal is None:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            return
        for stream in range(3):
            os.dup2(self._terminal, stream)
        os.close(self._terminal)

    def _obey(self) -> bool:
        """Wait for a wish or the end of a child; False when all has to end."""
        if not self._wishes:
            ready, _, _ = select.select([0, self._woken], [], [], _AGAIN_SECONDS if self._is_untold else None)
            if self._woken in ready:
                os.read(self._woken, 512)
            if 0 not in ready:
                if self._is_untold:
                    self._end_softly()
                return True
            self._wishes = os.read(0, 512) or HARDLY
        wishes, self._wishes = self._wishes, b""
        if HARDLY in wishes:
            return False
        self._end_softly()
        return True

    def _end_softly(self) -> None:
        """Send SIGTERM to all that would take it; while nobody would, as before a mounted program starts, keep it."""
        takers = [one for one in descendants(os.getpid()) if _takes(one, signal.SIGTERM)]
        _signal(takers, signal.SIGTERM)
        self._is_untold = not takers

    def _reap(self) -> None:
        """Take note of every child that has ended, those that the program left behind included."""
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == self._program:
                    self._status = found[1]

    def _end_all(self) -> None:
        deadline = time.monotonic() + _END_SECONDS
        while _signal_all(signal.SIGKILL) and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
            self._reap()

    def _leave_output(self) -> None:
        """Hold the program's output no longer: its end of file says that the program has closed it."""
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        if self._terminal is not None:
            os.close(self._terminal)

    def _report(self, what: Mapping[str, Any]) -> None:
        with suppress(BrokenPipeError):  # nobody is left who wants to know
            os.write(self._order["report"], json.dumps(what).encode() + b"\n")


def hand_on(descriptors: Sequence[int]) -> None:
    """Let what this process becomes have these as 3, 4 and so on, whatever is open there."""
    above = FIRST + len(descriptors)
    for number, one in enumerate([fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, above) for one in descriptors], FIRST):
        os.dup2(one, number)


def _signal_all(number: int) -> list[int]:
    """Send a signal to everything below this process, and return whom it was meant for."""
    found = descendants(os.getpid())
    _signal(found, number)
    return found


def _signal(pids: Sequence[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _takes(pid: int, number: int) -> bool:
    """Whether a process has not ended and does not ignore a signal."""
    try:
        lines = Path("/proc", str(pid), "status").read_bytes().splitlines()
    except OSError:
        return False
    told = dict(line.split(b":\t", 1) for line in lines)
    has_ended = told[b"State"][:1] in b"ZX"
    return not has_ended and not int(told[b"SigIgn"], 16) >> (number - 1) & 1


def descendants(root: int) -> list[int]:
    """The process ids of all children of a process, of their children, and so on, each behind its parent."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError, ValueError, IndexError):  # it has ended meanwhile
                parent = int((folder / "stat").read_bytes().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(folder.name))
    found: dict[int, None] = {}  # in order
    waiting = [root]
    while waiting:
        new = [one for one in children.get(waiting.pop(), ()) if one not in found]
        found |= dict.fromkeys(new)
        waiting += new
    return list(found)


def disk_bytes(folder: Path) -> tuple[int, int]:
    """What a process, told by its folder in /proc, and those it has waited for have read from disks and written."""
    counted = dict(line.split(": ") for line in (folder / "io").read_text().splitlines())
    return int(counted["read_bytes"]), int(counted["write_bytes"])


def _used() -> dict[str, float]:
    """What has been used by this process and all that it has waited for."""
    read, written = 0, 0
    with suppress(OSError):  # a kernel that does not count it
        read, written = disk_bytes(Path("/proc/self"))
    return {"cpu_seconds": sum(os.times()[:4]), "read_bytes": read, "written_bytes": written}


def _read_order() -> tuple[Mapping[str, Any], bytes]:
    """The order, and the wishes that came with it."""
    said = b""
    while b"\n" not in said:
        if not (piece := os.read(0, 1 << 16)):
            sys.exit(0)  # the owner has ended before it said anything
        said += piece
    line, _, wishes = said.partition(b"\n")
    return json.loads(line), wishes


if __name__ == "__main__":
    Keeper(*_read_order()).run()
