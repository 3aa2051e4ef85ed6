"""`nodewise job`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.table import Column, Table

from hadoop.client.yarn import Application
from hadoop.rest.addresses import namenode_http, resourcemanager_http
from hadoop.rest.webhdfs import WebHdfs
from infosvc.wire.fields import answer_of
from jobs.application import following, job_record, logs
from jobs.application.page import record_page
from jobs.application.status import ContainerStatus
from jobs.application.submit import Submitter
from jobs.commands import attend, bars, records, tables
from jobs.commands.job_resume import resume
from jobs.commands.kind_commands import JobGroup
from jobs.commands.options import console, hadoop_home, hadoop_options, progress_console, session, show
from jobs.commands.request_options import request, request_options
from jobs.commands.train import quantize, train
from jobs.division import decision_store, explanation
from jobs.errors import JobError
from jobs.images import result
from jobs.images.accuracy import accuracy
from jobs.kinds.classify import request as classify
from jobs.reports import pages, report


@click.group(cls=JobGroup)
def job() -> None:
    """Run jobs on YARN: classify images in HDFS (submit), or run a program on the best nodes (run).

    \b
    Example:
      nodewise job submit --input hdfs:///data/images --output hdfs:///out/run1 --capability perf_history --wait
      nodewise job report hdfs:///out/run1
      nodewise job run --copies 3 --capability perf_cpu -- ./program args
    """


@job.command()
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
    hadoop = {name: options.pop(name) for name in ("hadoop_conf", "jars", "user")}
    asked = request(home, options)
    submitter = session(home, hadoop)
    asked = classify.check(submitter, asked)
    application_id = submitter.submit(classify.order(submitter, asked))
    if not wait:
        show(as_json, {"job_id": application_id, "output": asked.settings.output}, f"{application_id} submitted")
        return
    attend.attend(submitter, application_id, progress_console)
    _show_summary(submitter, asked.settings.output, as_json)


@job.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def list_(home: Path, /, as_json: bool, **hadoop: Any) -> None:
    """List the jobs that YARN remembers.

    \b
    Example:
      nodewise job list --json
    """
    found = session(home, hadoop).yarn.applications()
    table = Table(Column("job", no_wrap=True), "kind", "state", "outcome", "progress", "attempts", "said")
    for one in found:
        said = one.diagnostics.split("\n", maxsplit=1)[0]
        kind, progress = job_record.kind_of(one.tags), f"{one.progress:.0%}"
        table.add_row(one.application_id, kind, one.state, one.final, progress, str(one.attempt), said)
    show(as_json, [_application_json(one) for one in found], table)


@job.command()
@click.argument("job_id")
@click.option("--watch", is_flag=True, help="Follow the job until it ends.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def status(home: Path, /, job_id: str, watch: bool, as_json: bool, **hadoop: Any) -> None:
    """Show how far a job is, and each of its nodes.

    \b
    Example:
      nodewise job status application_1700000000000_0001 --watch
    """
    submitter = session(home, hadoop)
    if watch:
        attend.watch(submitter, job_id, progress_console)
    found = submitter.yarn.application(job_id)
    seen = following.ask(found)
    body = _application_json(found) | {"status": seen.to_json() if seen else None}
    said = f"{found.state} {found.final} {found.progress:.0%} {found.diagnostics}".strip()
    show(as_json, body, bars.snapshot(following.Sight(found, seen), said))


@job.command()
@click.argument("job_id")
@hadoop_options
@click.pass_obj
def kill(home: Path, /, job_id: str, **hadoop: Any) -> None:
    """End a job and all its containers; nothing is left at its output.

    \b
    Example:
      nodewise job kill application_1700000000000_0001
    """
    submitter = session(home, hadoop)
    before = submitter.yarn.application(job_id)
    submitter.kill(job_id)
    after = submitter.yarn.application(job_id)
    if before.has_ended:
        console.print(f"{job_id} had ended already: {before.final.lower()}")
    elif after.final == "KILLED":
        console.print(f"{job_id} killed")
    else:
        console.print(f"{job_id} ended by itself before it could be killed: {after.final.lower()}")


@job.command("logs")
@click.argument("job_id")
@click.option("-f", "--follow", "follows", is_flag=True, help="Go on until the job ends.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object per line.")
@hadoop_options
@click.pass_obj
def logs_(home: Path, /, job_id: str, follows: bool, as_json: bool, **hadoop: Any) -> None:
    """Print what the application masters and the workers of a job wrote, each line after the name of its node.

    A line of stdout follows a |, one of stderr a !, and what nodewise itself says a -.

    \b
    Example:
      nodewise job logs application_1700000000000_0001 -f
    """
    where = hadoop_home(home, **hadoop)
    rm_http = resourcemanager_http(where.conf_dir)

    def list_containers(alive: bool) -> Sequence[ContainerStatus]:
        seen = following.ask_proxy(rm_http, job_id) if alive else None
        if alive:
            return seen.containers if seen else ()
        record = job_record.load(WebHdfs(namenode_http(where.conf_dir), where.user), job_id)
        return record.status.containers if record else ()

    found = logs.JobLogs(rm_http, job_id, where.user, list_containers)
    try:
        for line in logs.follow(found) if follows else logs.printed_lines(found):
            if isinstance(line, str):
                progress_console.print(line, style="dim", soft_wrap=True)
            else:
                click.echo(json.dumps(asdict(line)) if as_json else line)
    except KeyboardInterrupt:
        raise click.exceptions.Exit(attend.INTERRUPTED) from None


@job.command("result")
@click.argument("output")
@click.option("--errors", is_flag=True, help="Only images that could not be classified.")
@click.option(
    "--truth",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="labels.tsv",
    help="Tell how many images were recognised, by the table that `nodewise images make` left beside them.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with all five classes of each image.")
@hadoop_options
@click.pass_obj
def result_(home: Path, /, output: str, errors: bool, truth: Path | None, as_json: bool, **hadoop: Any) -> None:
    """List what a finished job made of each image, or how often it was right.

    \b
    Example:
      nodewise job result hdfs:///out/run1 --errors
      nodewise job result hdfs:///out/run1 --truth pictures/labels.tsv
    """
    if errors and truth:
        raise click.UsageError("--errors and --truth exclude each other: give one of them")
    found = result.rows(session(home, hadoop).filesystem, output, errors)
    if truth:
        result.check_classified(output, found)
        known = accuracy(found, truth)
        show(as_json, result.accuracy_json(known), tables.accuracy_table(known))
        return
    table = Table("picture", "class", "score", "node")
    for row in found:
        table.add_row(row["path"], *result.row_text(row), row["node_name"])
    show(as_json, found, table)


@job.command("report")
@click.argument("outputs", metavar="OUTPUT|JOB...", nargs=-1, required=True)
@click.option(
    "--html", "html_file", type=click.Path(dir_okay=False, path_type=Path), help="Write a page into this file."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def report_(home: Path, /, outputs: tuple[str, ...], html_file: Path | None, as_json: bool, **hadoop: Any) -> None:
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
            _save(html_file, record_page(record.status, record.said).encode(), "page")
        return
    reports = _show_reports(submitter, [records.output(submitter, one) for one in outputs], as_json)
    if html_file:
        page = pages.html(reports[0]) if len(reports) == 1 else pages.comparison_html(reports)
        _save(html_file, page.encode(), "page")


@job.command()
@click.argument("job")
@click.option("--node", metavar="NAME", help="Only this node.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Also put the record into this file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def explain(home: Path, /, job: str, node: str | None, save: Path | None, as_json: bool, **hadoop: Any) -> None:
    """Explain each node's share: its capability with age and confidence, the formula, and what was moved.

    JOB is the id of a job, even of one that failed, its output folder in HDFS, or a decision.json on this machine (no
    cluster needed).

    \b
    Example:
      nodewise job explain application_1700000000000_0001 --node worker1
    """
    decision = decision_store.load(job, lambda: session(home, hadoop))
    said = explanation.explanation(decision, node)
    if as_json:
        click.echo(json.dumps(answer_of(said), indent=1))
    else:
        for line in explanation.heading(said):
            console.print(line, soft_wrap=True)
        console.print(tables.shares_table(said))
        for line in explanation.sentences(said):
            console.print(line, soft_wrap=True)
    if save:
        _save(save, decision.to_bytes(), "record")


job.add_command(resume)
job.add_command(train)
job.add_command(quantize)


def _save(file: Path, content: bytes, what: str) -> None:
    try:
        file.write_bytes(content)
    except OSError as error:
        raise JobError(f"the {what} cannot be written to {file}: {error.strerror}") from error
    progress_console.print(f"{what}: {file.absolute()}")


def _show_summary(submitter: Submitter, output: str, as_json: bool) -> None:
    (one,) = _show_reports(submitter, [output], as_json)
    if not as_json:
        for text in pages.remarks(one):
            console.print(text, soft_wrap=True)


def _show_reports(submitter: Submitter, outputs: Sequence[str], as_json: bool) -> list[report.JobReport]:
    bodies = [_read_report(submitter, output) for output in outputs]
    reports = [report.JobReport.from_json(body) for body in bodies]
    show(as_json, bodies[0] if len(bodies) == 1 else bodies, tables.comparison(reports))
    if not as_json:
        for output, one in zip(outputs, reports, strict=True):
            errors = f", {one.errors} with an error" if one.errors else ""
            done = f"{one.items} {one.unit}{errors}, {one.wall_seconds:.0f} s after the application master began"
            console.print(f"{done}; report: {output}/report.json and report.html", soft_wrap=True)
            if one.note:
                console.print(one.note)
    return reports


def _read_report(submitter: Submitter, output: str) -> dict[str, Any]:
    name = f"{output.rstrip('/')}/report.json"
    if not submitter.filesystem.exists(name):
        raise JobError(
            f"{output} holds no report.json", remedy="is it the output of a finished job? `nodewise job list`"
        )
    try:
        body: dict[str, Any] = json.loads(submitter.filesystem.read(name))
    except ValueError as error:
        raise JobError(f"{name} is not a report of a job: it is not JSON ({error})") from error
    return body


def _application_json(application: Application) -> dict[str, Any]:
    return asdict(application) | {"tags": sorted(application.tags), "kind": job_record.kind_of(application.tags)}
