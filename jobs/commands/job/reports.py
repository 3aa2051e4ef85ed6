"""Reports of finished jobs, read from HDFS and shown, and what is put into a file on this machine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobs.application.job_record import Files
from jobs.commands.job import tables
from jobs.commands.options import console, progress_console, show
from jobs.errors import JobError
from jobs.reports.report import JobReport


def show_reports(files: Files, outputs: Sequence[str], as_json: bool) -> list[JobReport]:
    """Print them side by side, and return them; JobError where there is none."""
    bodies = [read_report(files, output) for output in outputs]
    reports = [JobReport.from_json(body) for body in bodies]
    show(as_json, bodies[0] if len(bodies) == 1 else bodies, tables.comparison(reports))
    if not as_json:
        for output, one in zip(outputs, reports, strict=True):
            errors = f", {one.errors} with an error" if one.errors else ""
            done = f"{one.items} {one.unit}{errors}, {one.wall_seconds:.0f} s after the application master began"
            console.print(f"{done}; report: {output}/report.json and report.html", soft_wrap=True)
            if one.note:
                console.print(one.note)
    return reports


def read_report(files: Files, output: str) -> dict[str, Any]:
    """The report in an output; JobError when there is none that can be read."""
    name = f"{output.rstrip('/')}/report.json"
    if not files.exists(name):
        raise JobError(
            f"{output} holds no report.json", remedy="is it the output of a finished job? `nodewise job list`"
        )
    try:
        body: dict[str, Any] = json.loads(files.read(name))
    except ValueError as error:
        raise JobError(f"{name} is not a report of a job: it is not JSON ({error})") from error
    return body


def save(file: Path, content: bytes, what: str) -> None:
    """Put a page or a record into a file, and say so; JobError when it cannot be written."""
    try:
        file.write_bytes(content)
    except OSError as error:
        raise JobError(f"the {what} cannot be written to {file}: {error.strerror}") from error
    progress_console.print(f"{what}: {file.absolute()}")
