"""`nodewise job submit`: images in HDFS, classified where they lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from jobs.commands.job import attend
from jobs.commands.job.reports import show_reports
from jobs.commands.options import console, hadoop_options, progress_console, session, show, take_hadoop
from jobs.commands.request_options import request, request_options
from jobs.kinds.classify import request as classify
from jobs.reports import pages


@click.command()
@request_options
@click.option("--wait", is_flag=True, help="Follow the job and print its report.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def submit(home: Path, /, wait: bool, as_json: bool, **options: Any) -> None:
    """Submit a job; with --wait, follow it and print its report. Ctrl-C then asks whether to detach or to kill.

    \b
    Example:
      nodewise job submit --input hdfs:///data/images --output hdfs:///out/run1 \\
          --policy algorithm1 --capability perf_cpu --wait
    """
    hadoop = take_hadoop(options)
    asked = request(home, options)
    submitter = session(home, hadoop)
    asked = classify.check(submitter, asked)
    application_id = submitter.submit(classify.order(submitter, asked))
    if not wait:
        show(as_json, {"job_id": application_id, "output": asked.settings.output}, f"{application_id} submitted")
        return
    attend.attend(submitter, application_id, progress_console)
    (report,) = show_reports(submitter, [asked.settings.output], as_json)
    if not as_json:
        for text in pages.remarks(report):
            console.print(text, soft_wrap=True)
