"""`nodewise train submit`: a training run on the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from jobs.application.job_spec import JobOptions
from jobs.commands.job import attend
from jobs.commands.made_options import collect, made_options
from jobs.commands.options import hadoop_options, progress_console, session, show, take_hadoop
from jobs.commands.request_options import COLD_START, access
from jobs.commands.service_options import service_options
from jobs.kinds.train import request as training
from jobs.kinds.train.settings import TrainSettings


@click.command()
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED, metavar="PROGRAM [ARGUMENT]...")
@made_options(TrainSettings, JobOptions)
@service_options
@click.option("--wait", is_flag=True, help="Follow the run until it ends.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def submit(home: Path, /, argv: Sequence[str], wait: bool, as_json: bool, **options: Any) -> None:
    """Train with a program on several nodes. With --wait, follow it; Ctrl-C then asks whether to detach or kill.

    The program trains in a loop over a Run of nodewise.learning, and `python` is the Python of the nodes. A run that
    has failed or was killed goes on from its newest checkpoint when it is submitted again with the same --output.

    \b
    Example:
      nodewise train submit --members 2:4 --output hdfs:///out/run1 --file train.py -- python train.py
      nodewise train logs application_1700000000000_0001 -f
    """
    hadoop = take_hadoop(options)
    options["cold_start"] = options["cold_start"] or COLD_START
    settings = collect(TrainSettings, options, argv=list(argv))
    training.check_words(settings)
    asked = training.TrainRequest(settings, collect(JobOptions, options), access(home, options["service"]))
    submitter = session(home, hadoop)
    application_id = submitter.submit(training.check(submitter, asked))
    if wait:
        attend.attend(submitter, application_id, progress_console)
    show(as_json, {"job_id": application_id}, f"{application_id} {'succeeded' if wait else 'submitted'}")
