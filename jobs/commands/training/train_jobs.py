"""`nodewise train status|logs|kill`: a run is a job, so the commands of jobs serve it; their help speaks of runs."""

from __future__ import annotations

import copy

import click

from jobs.commands.job import job_kill, job_logs, job_status


def with_help(command: click.Command, text: str) -> click.Command:
    """The same command with another help."""
    told = copy.copy(command)
    told.help = text
    return told


status = with_help(
    job_status.status,
    """Show how many steps of a run are done, and what each of its nodes has computed.

    \b
    Example:
      nodewise train status application_1700000000000_0001 --watch
    """,
)
logs = with_help(
    job_logs.logs,
    """Show what the members of a run have printed, all of them line by line.

    A line of stdout follows a |, one of stderr a !, and what nodewise itself says a -.

    \b
    Example:
      nodewise train logs application_1700000000000_0001 -f
    """,
)
kill = with_help(
    job_kill.kill,
    """End a run and all its containers; its checkpoints stay, and a run with the same --output goes on from the newest.

    \b
    Example:
      nodewise train kill application_1700000000000_0001
    """,
)
