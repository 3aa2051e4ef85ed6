"""What a job that runs copies of a program is told, beyond what every job is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jobs.application.job_spec import Settings


@dataclass(frozen=True)
class CommandSettings(Settings):
    """`argv` is the program and its arguments, never a line for a shell; `files` are names laid beside it.

    capability   the data name by whose values nodes are the best ones, None where any will do
    resources    what each copy needs of other kinds of resource, such as {"yarn.io/gpu": 1}
    restarts     of each copy that does not end with exit code 0
    """

    argv: Sequence[str]
    copies: int = 1
    capability: str | None = None
    memory_mb: int = 512
    vcores: int = 1
    resources: Mapping[str, int] = field(default_factory=dict)
    priority: int = 1
    restarts: int = 2
    files: Sequence[str] = ()
