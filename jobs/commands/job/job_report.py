"""`nodewise job report`: what jobs did, one or several side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from jobs.application.page import record_page
from jobs.commands.job import records
from jobs.commands.job.reports import save, show_reports
from jobs.commands.options import hadoop_options, session, show
from jobs.reports import pages


@click.command()
@click.argument("outputs", metavar="OUTPUT|JOB...", nargs=-1, required=True)
@click.option(
    "--html", "html_file", type=click.Path(dir_okay=False, path_type=Path), help="Write a page into this file."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def report(home: Path, /, outputs: tuple[str, ...], html_file: Path | None, as_json: bool, **hadoop: Any) -> None:
    """Show the report of a finished job, or several side by side.

    Name a job by its output folder or by its id. For a job without output, its id shows how it ended. --html writes
    a page.

    \b
    Example:
      nodewise job report hdfs:///out/even hdfs:///out/cpu hdfs:///out/history --html compared.html
    """
    submitter = session(home, hadoop)
    if len(outputs) == 1 and (record := records.of_other_kind(submitter, outputs[0])):
        show(as_json, record.status.to_json() | {"said": record.said}, records.table(record))
        if html_file:
            save(html_file, record_page(record.status, record.said).encode(), "page")
        return
    reports = show_reports(submitter.filesystem, [records.output(submitter, one) for one in outputs], as_json)
    if html_file:
        page = pages.html(reports[0]) if len(reports) == 1 else pages.comparison_html(reports)
        save(html_file, page.encode(), "page")
