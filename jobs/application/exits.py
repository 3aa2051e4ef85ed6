"""Why a container ended: what YARN's exit status means for its work and for its node."""

from __future__ import annotations

from enum import Enum


class Exit(Enum):
    """The value is what the report says; `blames` and `counts` tell what follows."""

    FINISHED = "finished"
    UNSTARTED = "not started"
    NODE_LOST = "lost node"
    DISK = "failed disk"
    PREEMPTED = "preempted"
    MEMORY = "memory kill"
    RELEASED = "released"
    BY_YARN = "ended by YARN"
    KILLED = "killed"
    CRASHED = "crashed"
    OUTSIDE = "ended from outside"
    SILENT = "silent"

    @property
    def blames(self) -> bool:
        """Whether the work itself may be the cause: a process that ended by itself, or took too much memory."""
        return self in (Exit.MEMORY, Exit.KILLED, Exit.CRASHED)

    @property
    def counts(self) -> bool:
        """Whether it speaks against the node: YARN and we take containers away for reasons of our own."""
        return self not in (Exit.FINISHED, Exit.PREEMPTED, Exit.RELEASED, Exit.BY_YARN)


# org.apache.hadoop.yarn.api.records.ContainerExitStatus, and ContainerExecutor.ExitCode of the NodeManager
_BY_STATUS = {
    0: Exit.FINISHED,
    -1000: Exit.UNSTARTED,  # INVALID: its node could not fetch its files
    -100: Exit.NODE_LOST,  # ABORTED: also what is released, which we know ourselves
    -101: Exit.DISK,
    -102: Exit.PREEMPTED,
    -103: Exit.MEMORY,
    -104: Exit.MEMORY,
    -105: Exit.RELEASED,
    -106: Exit.BY_YARN,
    -107: Exit.BY_YARN,
    -108: Exit.BY_YARN,
    143: Exit.OUTSIDE,  # SIGTERM: nothing sends that to itself
    154: Exit.OUTSIDE,  # the NodeManager was started again, and did not find the process any more
}


def exit_of(status: int) -> Exit:
    """From YARN's exit status: its own are negative, 128 and a signal's number end a process, others it says itself.

    >>> [exit_of(status).value for status in (-102, 137, 143, 1)]
    ['preempted', 'killed', 'ended from outside', 'crashed']
    """
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return Exit.KILLED if status > 128 else Exit.CRASHED
