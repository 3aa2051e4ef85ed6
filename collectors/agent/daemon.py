"""How an agent becomes a background process, and how a later one takes its place."""

from __future__ import annotations

import os
import select
import signal
import sys
from contextlib import suppress
from pathlib import Path

STOP_SECONDS = 5.0
LOG_LIMIT = 1024 * 1024
_LOG_KEPT = 64 * 1024
_READY = b"ready"


class DaemonError(Exception):
    """The agent did not start or stop; the text says why."""


def pid_file(settings_file: Path) -> Path:
    """Beside the settings: whoever runs with these settings."""
    return settings_file.parent / "agent.pid"


def note_pid(settings_file: Path) -> None:
    """Say that this process runs with these settings."""
    pid_file(settings_file).write_text(f"{os.getpid()}\n")


def forget_pid(settings_file: Path) -> None:
    """Say that nobody runs with these settings any more."""
    file = pid_file(settings_file)
    try:
        file.unlink(missing_ok=True)
    except OSError:  # a supervisor may let the agent write this file, but not the folder
        file.write_text("")


def stop_previous(settings_file: Path) -> bool:
    """End the agent that runs with these settings, if one does; True when there was one."""
    pid = _noted_pid(settings_file)
    # After a container restarts, the number of the agent before can be this very process's own.
    if pid is None or pid == os.getpid():
        return False
    try:
        process = os.pidfd_open(pid)
    except OSError:  # no process has this number
        return False
    try:
        # Opened before it is looked at: from here on the number stands for no other process.
        if not _is_agent(pid, settings_file):
            return False
        _end(process, pid)
    finally:
        os.close(process)
    # One that was killed could not do this itself; a supervisor may have started another one meanwhile.
    if _noted_pid(settings_file) == pid:
        forget_pid(settings_file)
    return True


def detach(log_file: Path) -> int:
    """Fork: the child returns the pipe on which it must say `ready`, the parent waits for that word and exits.

    The parent exits with 0 when the child is ready, else with 1 after passing on the child's reason.
    """
    read_end, write_end = os.pipe()
    if os.fork() != 0:
        os.close(write_end)
        with os.fdopen(read_end, "rb") as pipe:
            answer = pipe.read()
        if answer == _READY:
            os._exit(0)
        sys.stderr.write(answer.decode() or f"the agent ended without a word: see {log_file}\n")
        sys.stderr.flush()
        os._exit(1)
    os.close(read_end)
    os.setsid()
    os.chdir("/")
    _redirect(log_file)
    return write_end


def cut_log(log_file: Path) -> None:
    """Keep only the end of a log that has become long; whoever writes to it must append."""
    with suppress(OSError), log_file.open("r+b") as log:
        if log.seek(0, os.SEEK_END) > LOG_LIMIT:
            log.seek(-_LOG_KEPT, os.SEEK_END)
            end = log.read().partition(b"\n")[2]
            log.seek(0)
            log.write(end)
            log.truncate()


def say(pipe: int, reason: str | None = None) -> None:
    """Tell the waiting parent that the agent is ready, or why it is not."""
    os.write(pipe, _READY if reason is None else f"{reason}\n".encode())
    os.close(pipe)


def _noted_pid(settings_file: Path) -> int | None:
    """The process that last said it runs with these settings."""
    try:
        return int(pid_file(settings_file).read_text())
    except (OSError, ValueError):
        return None


def _end(process: int, pid: int) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, number)
        # Readable only once it has closed everything: by then the next one may listen where it did.
        if select.select([process], [], [], STOP_SECONDS)[0]:
            return
    raise DaemonError(f"the previous agent (process {pid}) does not end: stop it by hand")


def _redirect(log_file: Path) -> None:
    log = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    cut_log(log_file)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    for descriptor in {null, log} - {0, 1, 2}:
        os.close(descriptor)


def _is_agent(pid: int, settings_file: Path) -> bool:
    """Whether this process is an agent with these settings, and not somebody who got its number since."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"--settings" in words and str(settings_file).encode() in words
