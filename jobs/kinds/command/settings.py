"""What a job that runs copies of a program is told, beyond what every job is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.application.job_spec import Settings
from jobs.application.options import option


@dataclass(frozen=True, kw_only=True)
class CommandSettings(Settings):
    """`argv` is the program and its arguments, never a line for a shell.

    capability   the data name by whose values nodes are the best ones, None where any will do
    restarts     of each copy that does not end with exit code 0
    files        of the user's machine; once the job is submitted, their names beside the program
    """

    argv: Sequence[str]
    copies: int = option(1, help="How many copies run, each on a node of its own.", least=1)
    capability: str | None = option(None, help="Data name that ranks the nodes  [default: any node].", metavar="NAME")
    memory_mb: int = option(512, flag="--memory", help="Memory of each copy in MB.", least=64, is_memory=True)
    vcores: int = option(1, help="Cores of each copy.", least=1)
    restarts: int = option(2, help="How often a copy that fails is started again.", least=0)
    files: Sequence[str] = option(
        (),
        flag="--file",
        help="File to lay beside the program; may be given several times.",
        is_file=True,
    )
