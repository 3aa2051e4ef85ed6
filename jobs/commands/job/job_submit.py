"""`nodewise job submit`: images in HDFS, classified where they lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from jobs.application.job_record import Files
from jobs.commands.job import attend, pooled
from jobs.commands.job.reports import show_reports
from jobs.commands.options import console, hadoop_options, progress_console, session, show, take_hadoop
from jobs.commands.request_options import request, request_options
from jobs.commands.task_model import fetch_model
from jobs.kinds.classify import request as classify
from jobs.kinds.pool.wishes import LEAST_WEIGHT, MOST_WEIGHT
from jobs.reports import pages


@click.command()
@request_options
@click.option("--pool", metavar="NAME", help="Have it done by the workers of this pool, see `nodewise pool`.")
@click.option(
    "--weight",
    type=click.FloatRange(LEAST_WEIGHT, MOST_WEIGHT),
    default=1,
    show_default=True,
    help="How much of the pool's work it gets, beside other jobs by theirs.",
)
@click.option(
    "--wait-for-pool",
    type=click.FloatRange(0),
    default=0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for a pool that is not up, is full, or has no worker.",
)
@click.option("--wait", is_flag=True, help="Follow the job and print its report.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def submit(
    home: Path, /, pool: str | None, weight: float, wait_for_pool: float, wait: bool, as_json: bool, **options: Any
) -> None:
    """Submit a job; with --wait, follow it and print its report. Ctrl-C then asks whether to detach or to kill.

    With --pool it begins at once: workers, network and everything that an option says of them are the pool's.

    \b
    Example:
      nodewise job submit --input hdfs:///data/images --output hdfs:///out/run1 \\
          --policy algorithm1 --capability perf_cpu --wait
    """
    hadoop = take_hadoop(options)
    keep = click.get_current_context().with_resource
    options["model"] = fetch_model(options["model"], lambda: options["service"].client(home), keep)
    asked = request(home, options)
    if pool is not None:
        given = {**options, "cold_start": asked.settings.cold_start}
        followed, job_id = pooled.submit(home, hadoop, given, pooled.Wanted(pool, weight, wait_for_pool))
        if wait:
            attend.attend(followed, job_id, progress_console, followed.ask)
            _show_end(followed.files, followed.output, as_json)
            return
    else:
        submitter = session(home, hadoop)
        asked = classify.check(submitter, asked)
        job_id = submitter.submit(classify.order(submitter, asked))
        if wait:
            attend.attend(submitter, job_id, progress_console)
            _show_end(submitter.filesystem, asked.settings.output, as_json)
            return
    show(as_json, {"job_id": job_id, "output": asked.settings.output}, f"{job_id} submitted")


def _show_end(files: Files, output: str, as_json: bool) -> None:
    """The report of a job that has succeeded."""
    (report,) = show_reports(files, [output], as_json)
    if not as_json:
        for text in pages.remarks(report):
            console.print(text, soft_wrap=True)
