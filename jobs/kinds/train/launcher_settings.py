"""What the launcher of a member is told by the application master, in a file beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.application.job_spec import Settings


@dataclass(frozen=True, kw_only=True)
class LauncherSettings(Settings):
    """Paths of HDFS have no scheme.

    master   the file that says where the application master is now: {"address": "http://host:port"}
    token    what the application master wants to hear
    output   where the run keeps its checkpoints
    sync     how often members average, None for as the program says
    """

    argv: Sequence[str]
    master: str
    token: str
    output: str
    sync: str | None = None
