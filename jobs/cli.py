"""`nodewise job`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from hadoop.conf import resourcemanager_http
from hadoop.yarn import Application
from infosvc.client import read_token
from jobs import explain as explanation
from jobs import kept, logs, report, result
from jobs.engines import ENGINES
from jobs.errors import JobError
from jobs.options import console, hadoop_home, hadoop_options, progress_console, session, show
from jobs.package import ROOT
from jobs.service_options import service_options
from jobs.submit import Request, Submitter
from locality.policies import POLICIES


@click.group()
def job() -> None:
    """Divide pictures in HDFS among the nodes by what the nodes can do, and classify them there.

    \b
    Example:
      nodewise job submit --input hdfs:///data/images --output hdfs:///out/run1 --capability perf_history --wait
      nodewise job report hdfs:///out/run1
    """


@job.command()
@click.option("--input", "input_", required=True, help="Folder of pictures in HDFS.")
@click.option("--output", required=True, help="Folder in HDFS for the results; must not exist yet.")
@click.option("--engine", default="mxnet_alexnet", show_default=True, help=f"One of {', '.join(sorted(ENGINES))}.")
@click.option("--policy", default="algorithm1", show_default=True, help=f"One of {', '.join(sorted(POLICIES))}.")
@click.option("--capability", required=True, metavar="NAME", help="Data name that tells what a node can do.")
@click.option("--batch", type=click.IntRange(1, 1024), default=32, show_default=True, help="Pictures per inference.")
@click.option("--memory", type=click.IntRange(256), default=1152, show_default=True, help="MB of each container.")
@click.option("--vcores", type=click.IntRange(1), default=1, show_default=True, help="Cores of each container.")
@click.option("--weights", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Gluon parameters.")
@click.option("--labels", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="One class a line.")
@service_options("To keep history.")
@click.option("--master-python", default=sys.executable, help="Python of the application master on the nodes.")
@click.option(
    "--worker-python",
    envvar="NODEWISE_WORKER_PYTHON",
    default=str(ROOT / ".venv-worker" / "bin" / "python"),
    help="Python with the engine on the nodes [default: what scripts/setup made].",
)
@click.option("--capability-wait", type=float, default=20, show_default=True, help="Seconds for fresh values.")
@click.option("--container-wait", type=float, default=60, show_default=True, help="Seconds for a node's container.")
@click.option("--wait", is_flag=True, help="Follow the job and print its report.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def submit(home: Path, /, input_: str, wait: bool, as_json: bool, **options: Any) -> None:
    """Submit a job; with --wait, follow it and print its report.

    \b
    Example:
      nodewise job submit --input hdfs:///data/images --output hdfs:///out/run1 \\
          --policy algorithm1 --capability perf_cpu --wait
    """
    hadoop = {name: options.pop(name) for name in ("hadoop_conf", "jars", "user")}
    options["token"] = read_token(home, options.pop("token_file"))
    options["memory_mb"] = options.pop("memory")
    request = Request(input=input_, info_url=options.pop("url"), **options)
    submitter = session(home, hadoop)
    submitter.check(request)
    application_id = submitter.submit(request)
    if not wait:
        show(as_json, {"job_id": application_id, "output": request.output}, f"{application_id} submitted")
        return
    _follow(submitter, application_id)
    _show_reports(submitter, [request.output], as_json)


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
    table = Table(Column("job", no_wrap=True), "state", "outcome", "progress", "said")
    for one in found:
        said = one.diagnostics.split("\n", maxsplit=1)[0]
        table.add_row(one.application_id, one.state, one.final, f"{one.progress:.0%}", said)
    show(as_json, [_application_json(one) for one in found], table)


@job.command()
@click.argument("job_id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def status(home: Path, /, job_id: str, as_json: bool, **hadoop: Any) -> None:
    """Show how far a job is.

    \b
    Example:
      nodewise job status application_1700000000000_0001
    """
    found = session(home, hadoop).yarn.application(job_id)
    said = f"{found.state} {found.final} {found.progress:.0%} {found.diagnostics}".strip()
    show(as_json, _application_json(found), said)


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
    submitter.kill(job_id)
    console.print(f"{job_id} killed")


@job.command("logs")
@click.argument("job_id")
@hadoop_options
@click.pass_obj
def logs_(home: Path, /, job_id: str, **hadoop: Any) -> None:
    """Print what the application master and the workers of a job wrote.

    \b
    Example:
      nodewise job logs application_1700000000000_0001
    """
    where = hadoop_home(home, **hadoop)
    for log in logs.fetch(resourcemanager_http(where.conf_dir), job_id, where.user):
        if log.text.strip():
            click.echo(f"--- {log.container_id} on {log.address}, {log.stream}")
            click.echo(log.text.rstrip())


@job.command("result")
@click.argument("output")
@click.option("--errors", is_flag=True, help="Only pictures that could not be classified.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with all five classes of each picture.")
@hadoop_options
@click.pass_obj
def result_(home: Path, /, output: str, errors: bool, as_json: bool, **hadoop: Any) -> None:
    """List what a finished job made of each picture.

    \b
    Example:
      nodewise job result hdfs:///out/run1 --errors
    """
    found = result.rows(session(home, hadoop).filesystem, output, errors)
    table = Table("picture", "class", "score", "node")
    for row in found:
        score = "" if row["error"] else f"{row['score']:.4f}"
        table.add_row(row["path"], row["error"] or row["class_name"], score, row["node_name"])
    show(as_json, found, table)


@job.command("report")
@click.argument("outputs", metavar="OUTPUT...", nargs=-1, required=True)
@click.option("--html", "html_file", type=click.Path(dir_okay=False, path_type=Path), help="Write a page here.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def report_(home: Path, /, outputs: tuple[str, ...], html_file: Path | None, as_json: bool, **hadoop: Any) -> None:
    """Show the report of a finished job, or several side by side.

    \b
    Example:
      nodewise job report hdfs:///out/even hdfs:///out/cpu hdfs:///out/history --html compared.html
    """
    reports = _show_reports(session(home, hadoop), outputs, as_json)
    if html_file:
        page = report.html(reports[0]) if len(reports) == 1 else report.comparison_html(reports)
        _save(html_file, page.encode(), "page")


@job.command()
@click.argument("job")
@click.option("--node", metavar="NAME", help="Only this node.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Also put the record into this file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def explain(home: Path, /, job: str, node: str | None, save: Path | None, as_json: bool, **hadoop: Any) -> None:
    """Tell why each node got its share: its capability, how old and how sure that was, the formula, what was moved.

    JOB is a job's id, also of one that failed, its output in HDFS, or a decision.json here, which needs no cluster.

    \b
    Example:
      nodewise job explain application_1700000000000_0001 --node worker1
    """
    decision = kept.load(job, lambda: session(home, hadoop))
    body = explanation.explanation(decision, node)
    if as_json:
        click.echo(json.dumps(body, indent=1))
    else:
        for line in explanation.heading(body):
            console.print(line, soft_wrap=True)
        console.print(explanation.table(body))
        for line in explanation.sentences(body):
            console.print(line, soft_wrap=True)
    if save:
        _save(save, decision.to_bytes(), "record")


def _save(file: Path, content: bytes, what: str) -> None:
    try:
        file.write_bytes(content)
    except OSError as error:
        raise JobError(f"the {what} cannot be written to {file}: {error.strerror}") from error
    progress_console.print(f"{what}: {file.absolute()}")


def _follow(submitter: Submitter, application_id: str) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=progress_console) as bar:
        task = bar.add_task(application_id, total=None)

        def update(application: Application) -> None:
            running = application.state == "RUNNING"
            bar.update(task, total=1.0 if running else None, completed=application.progress)
            bar.update(task, description=f"{application_id} {application.state.lower()}")

        try:
            submitter.follow(application_id, update)
        except KeyboardInterrupt:
            raise JobError(
                f"{application_id} goes on without being followed: `nodewise job status` with this id shows how far "
                "it is, `nodewise job kill` ends it"
            ) from None


def _show_reports(submitter: Submitter, outputs: Sequence[str], as_json: bool) -> list[report.JobReport]:
    bodies = [_read_report(submitter, output) for output in outputs]
    reports = [report.JobReport.from_json(body) for body in bodies]
    show(as_json, bodies[0] if len(bodies) == 1 else bodies, report.comparison(reports))
    if not as_json:
        for output, one in zip(outputs, reports, strict=True):
            errors = f", {one.errors} with an error" if one.errors else ""
            console.print(f"{one.images} images{errors}; report: {output}/report.json and report.html")
            if one.note:
                console.print(one.note)
    return reports


def _read_report(submitter: Submitter, output: str) -> dict[str, Any]:
    name = f"{output.rstrip('/')}/report.json"
    if not submitter.filesystem.exists(name):
        raise JobError(f"{output} holds no report.json: is it the output of a finished job? `nodewise job list`")
    try:
        body: dict[str, Any] = json.loads(submitter.filesystem.read(name))
    except ValueError as error:
        raise JobError(f"{name} is no report of a job: it is not JSON ({error})") from error
    return body


def _application_json(application: Application) -> dict[str, Any]:
    return asdict(application) | {"tags": sorted(application.tags)}
