"""What the runner of a task is told, beyond what every job is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jobs.application.job_spec import Settings

FILES = "files.tar"
"""The user's files, beside the runner."""
ENVIRONMENT = "env"
"""The published Python environment, unpacked beside the runner."""
FOLDER = "tasks"
"""In the owner's folder in HDFS: a folder for each task, with what its program printed and why it ran where it ran."""
DECISION = "decision"
"""The file there that tells why a start has its node, by the start's number."""
STOP = "/stop"
"""The call by which the owner of a task has its program ended: by SIGTERM, and after STOP_SECONDS by SIGKILL."""
STOP_SECONDS = 30.0
MOVE = "/move"
"""The call by which the submitter has a program ended that is to start again on another node, as with STOP."""
TUNNEL = "/tunnel"
"""The call by which the submitter tells that somebody has opened a tunnel to the task."""
STEPS_PER_SECOND, PROGRAM_SECONDS = "Steps per second", "Seconds"
"""In the record of a task: how fast its program went by the steps that it reported, if it did, and how long it ran."""
STOPPED = "it was stopped"
"""Why such a task has failed."""
MOVED = "it moves to another node"
"""Why an application of a task has failed that is followed by one more."""
UNBOUND = "none of the nodes for which it waited has room any more"
"""Why an application was killed that was bound to some of the nodes that its task may use; one more for all follows."""
BOUND_SECONDS = 60.0
"""How long such an application waits at most."""


@dataclass(frozen=True, kw_only=True)
class TaskSettings(Settings):
    """`argv` is the program and its arguments, never a line for a shell; `variables` are of its environment.

    has_files         whether the user's files came along
    memory_mb         of the program alone, as are `vcores`
    output            a path of HDFS for what the program leaves, None for nothing
    seconds_at_most   until the program is ended, None for never
    checkpoint        a path of HDFS for what the program leaves while it runs, None for nothing
    data              paths of HDFS that are copied beside the program
    box               a name in boxes.BOXES
    image             of which a box shows the files, by its id; None for a box that shows the node's
    has_environment   whether a published Python environment lies beside the runner
    parts             of an environment: their paths in HDFS, by the folders that they become
    devices           that the program gets, by their names in the CDI files of its node
    gpus              that the program has for itself, as boxes.gpus.cards.Wanted; empty for none
    starts_before     of the task, in applications before this one: its starts are counted on
    bound_to          the nodes that alone may have this application, as the task moves; empty for all it may use
    hosts             the nodes that its task may use, as was known then; empty for any
    prefers           the nodes that YARN was asked for first
    ready_seconds     until each node would have the environment, as was known then; empty without one
    """

    task_id: str
    argv: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    has_files: bool = False
    memory_mb: int = 512
    vcores: int = 1
    output: str | None = None
    seconds_at_most: float | None = None
    checkpoint: str | None = None
    data: Sequence[str] = ()
    box: str = "process"
    image: str | None = None
    has_environment: bool = False
    parts: Mapping[str, str] = field(default_factory=dict)
    devices: Sequence[str] = ()
    gpus: Mapping[str, Any] = field(default_factory=dict)
    starts_before: int = 0
    bound_to: Sequence[str] = ()
    hosts: Sequence[str] = ()
    prefers: Sequence[str] = ()
    ready_seconds: Mapping[str, float] = field(default_factory=dict)
