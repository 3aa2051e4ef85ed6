"""The template: a process that has imported what pushed Python programs need, and of which their runs are forks.

The agent starts it, by `template.py`. It never had the agent's token or environment, and runs nothing itself: what a
program does happens in its fork, which has what a process that was started for it would have, and nothing else.
"""

from __future__ import annotations

import atexit
import builtins
import ctypes
import fcntl
import gc
import importlib
import json
import os
import select
import socket
import sys
import threading
import types
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from collectors.agent.run.limits import Limits

READY, WANTED = b"ready", b"fork"
RUNS, FAILED = "runs", "failed"
MOST_BYTES = 64 * 1024  # of an order
RESERVED = "RESERVED"
"""The variable that keeps room in a template's environment for those of its forks."""
PRELOADED = ("collectors.past_speeds", "collectors.peers", "locality.cost")
"""What the programs that ship import, and with it all that these import."""


@dataclass(frozen=True)
class Order:
    """What a fork is to become: a program's whole argument list, its environment and its limits.

    descriptor   the number under which it has the sealed copy of its program, as `argv` says
    library      the same of the agent's file, which the template has under this number
    timeout      seconds that the run may take
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    limits: Limits
    timeout: float
    descriptor: int
    library: int

    def to_bytes(self) -> bytes:
        """As one message."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, message: bytes) -> Order:
        """What an agent has sent."""
        body = json.loads(message)
        return cls(**(body | {"limits": Limits(**body["limits"])}))


@dataclass(frozen=True)
class _Ends:
    """What comes with an order: the program's copy, where it prints and complains."""

    program: int
    stdout: int
    stderr: int


def main() -> None:
    """Serve the agent at the other end of the descriptor that is the first argument, until it is gone."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    places = _find_places()
    for name in PRELOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # else a fork that looks for garbage would need memory of its own for all this
    template = os.getpid()
    channel.send(READY)
    told = _serve(channel)
    try:
        order, ends = _receive(told)
        told = _take_descriptors(order, ends, told)
        _become(order, places, template)
    except Exception as error:  # whatever it is, the agent has to hear of it
        os.write(told, f"{FAILED} {error}".encode())
        os._exit(1)
    os.write(told, f"{RUNS} {os.getpid()}".encode())
    os.close(told)
    _run(sys.argv[0])


def _serve(channel: socket.socket) -> int:
    """Fork for each socket that the agent sends; this returns in the forks alone, with that socket.

    The order comes over it, so that nothing of one is in the memory of other forks. A process that has ended keeps its
    number until the agent, which is told so, lets go of it.
    """
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    running: dict[int, tuple[int, int]] = {}  # by a descriptor of the process: its number, where the agent hears of it
    ended: dict[int, int] = {}  # by where the agent hears of it: the number of the process
    while True:
        for descriptor, _ in poll.poll():
            if descriptor in running:
                pid, told = running.pop(descriptor)
                poll.unregister(descriptor)
                os.close(descriptor)
                with suppress(OSError):
                    os.write(told, str(_status_of(pid)).encode())
                ended[told] = pid
                poll.register(told, 0)  # its other end is closed, or will be
            elif descriptor in ended:
                os.waitpid(ended.pop(descriptor), 0)
                poll.unregister(descriptor)
                os.close(descriptor)
            else:
                told = _receive_socket(channel)
                if (forked := _fork(told)) == 0:
                    channel.close()
                    return told
                if forked is not None:
                    process = os.pidfd_open(forked)
                    running[process] = forked, told
                    poll.register(process, select.POLLIN)


def _receive_socket(channel: socket.socket) -> int:
    message, descriptors, _, _ = socket.recv_fds(channel, len(WANTED), 1)
    if not message:
        os._exit(0)
    return descriptors[0]


def _fork(told: int) -> int | None:
    """As os.fork; None when no process or memory is left for one, which the agent is told."""
    try:
        return os.fork()
    except OSError as error:
        with socket.socket(fileno=told) as agent, suppress(OSError):
            agent.recv(1)  # the order, as its sender hears of no answer while something is unread
            agent.send(f"{FAILED} {error}".encode())
        return None


def _receive(told: int) -> tuple[Order, _Ends]:
    with socket.socket(fileno=os.dup(told)) as agent:
        message, descriptors, _, _ = socket.recv_fds(agent, MOST_BYTES, len(fields(_Ends)))
    return Order.from_bytes(message), _Ends(*descriptors)


def _status_of(pid: int) -> int:
    """The exit status of a process that has ended, negative for a signal."""
    found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert found is not None  # noqa: S101 - only with WNOHANG it can be, which mypy cannot know
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def _take_descriptors(order: Order, ends: _Ends, told: int) -> int:
    """Have what the order names, and nothing else of the template; the new place of `told`."""
    os.dup2(ends.stdout, 1)
    os.dup2(ends.stderr, 2)
    told = fcntl.fcntl(told, fcntl.F_DUPFD_CLOEXEC, order.descriptor + 1)
    os.dup2(ends.program, order.descriptor)
    os.set_inheritable(order.descriptor, True)
    kept = {0, 1, 2, told, order.descriptor, order.library}
    for number in {int(file.name) for file in Path("/proc/self/fd").iterdir()} - kept:
        with suppress(OSError):  # the list itself was open, too
            os.close(number)
    return told


def _become(order: Order, places: Sequence[range], template: int) -> None:
    """Have what a process has that was started for this order, limits included."""
    os.setsid()
    os.chdir(order.environment["STATE_DIR"])
    own = {name: value for name, value in os.environ.items() if name == "LC_CTYPE"}  # Python adds it where LANG is C
    os.environ.clear()
    os.environ.update({**order.environment, **own})
    sys.argv, sys.orig_argv = list(order.argv[3:]), list(order.argv)
    # The mark first, by which the agent finds what a run has left behind.
    marked = {"STATE_DIR": order.environment["STATE_DIR"], **order.environment}
    for place, words in zip(places, (order.argv, [f"{name}={value}" for name, value in marked.items()]), strict=True):
        _show(place, words)
    order.limits.apply(order.timeout, template)


def _find_places() -> tuple[range, range]:
    """Where in memory the kernel reads a process's arguments and environment; OSError where it does not tell."""
    found = list(map(int, Path("/proc/self/stat").read_text().rpartition(")")[2].split()[45:49]))
    if not all(found):
        raise OSError("the kernel does not tell where the arguments of a process are")
    return range(*found[:2]), range(*found[2:])


def _show(place: range, words: Iterable[str]) -> None:
    """Let others see these words below /proc, as far as there is room."""
    shown = b""
    for word in words:
        text = os.fsencode(word) + b"\0"
        if len(shown) + len(text) <= len(place):
            shown += text
    ctypes.memmove(place.start, shown.ljust(len(place), b"\0"), len(place))


def _run(path: str) -> None:
    """Do what Python does with a program; how that ends is how this process ends."""
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=path, __builtins__=builtins, __annotations__={}, __cached__=None)
    sys.modules["__main__"] = module
    sys.excepthook = _complain
    try:
        exec(compile(Path(path).read_bytes(), path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - checked
    except SystemExit as end:
        if type(end.code) is not int or not 0 <= end.code < 256:
            raise
        _leave(module, end.code)
    _leave(module, 0)


def _leave(module: types.ModuleType, status: int) -> None:
    """End as Python does, but leave to the kernel what the template had imported: to take that apart takes longer than
    most programs. What goes wrong here is left to Python, which says so.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    module.__dict__.clear()
    gc.collect()
    with suppress(Exception):
        for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            stream.flush()  # type: ignore[union-attr]
        os._exit(status)
    sys.exit(status)


def _complain(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
    """What Python says at the end of a program that failed, without what stands above it here."""
    above = ("<string>", _run.__code__.co_filename)
    while trace is not None and trace.tb_frame.f_code.co_filename in above:
        trace = trace.tb_next
    sys.__excepthook__(kind, error.with_traceback(trace), trace)
