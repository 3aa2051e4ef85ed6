"""`nodewise job run`: copies of a program on the best nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from jobs.application.job_spec import JobOptions
from jobs.commands.job import attend
from jobs.commands.made_options import collect, made_options
from jobs.commands.options import hadoop_options, progress_console, session, show, take_hadoop
from jobs.commands.request_options import access
from jobs.commands.service_options import service_options
from jobs.kinds.command import request as command
from jobs.kinds.command.settings import CommandSettings


@click.command()
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED, metavar="PROGRAM [ARGUMENT]...")
@made_options(CommandSettings, JobOptions)
@service_options
@click.option("--wait", is_flag=True, help="Follow the job until it ends.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def run(home: Path, /, argv: Sequence[str], wait: bool, as_json: bool, **options: Any) -> None:
    """Run copies of a program on the best nodes. With --wait, follow them; Ctrl-C then asks whether to detach or kill.

    A program with a slash, as in ./program, travels with the job. Each copy finds its number in COPY, the number of
    copies in COPIES and its node in NODE_NAME. A copy whose exit code is not 0 is started again.

    \b
    Example:
      nodewise job run --copies 3 --capability perf_cpu --memory 512 --vcores 1 -- ./program args
      nodewise job logs application_1700000000000_0001 -f
    """
    hadoop = take_hadoop(options)
    asked = _request(home, argv, options)
    submitter = session(home, hadoop)
    command.check(submitter, asked)
    application_id = submitter.submit(command.order(asked))
    if wait:
        attend.attend(submitter, application_id, progress_console)
    show(as_json, {"job_id": application_id}, f"{application_id} {'succeeded' if wait else 'submitted'}")


def _request(home: Path, argv: Sequence[str], given: dict[str, Any]) -> command.RunRequest:
    settings = collect(CommandSettings, given, argv=list(argv))
    return command.RunRequest(settings, collect(JobOptions, given), access(home, given["service"]))
