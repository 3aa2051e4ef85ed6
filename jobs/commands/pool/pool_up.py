"""`nodewise pool up`: workers that wait for jobs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from jobs.application.following import ask
from jobs.application.job_spec import JobOptions
from jobs.application.submit import Submitter
from jobs.commands.made_options import collect, made_options
from jobs.commands.options import hadoop_options, progress_console, session, show, take_hadoop
from jobs.commands.request_options import access
from jobs.commands.service_options import service_options
from jobs.commands.task_model import fetch_model
from jobs.errors import JobError
from jobs.kinds.classify import request as classify
from jobs.kinds.classify.settings import ClassifySettings
from jobs.kinds.pool import request as pools
from jobs.kinds.pool.client import Pools
from jobs.kinds.pool.settings import PoolSettings, check_name
from jobs.kinds.pool.wishes import READY

PAUSE_SECONDS = 0.5
LATE_SECONDS = 30.0
"""How much later than the first the last worker may be ready before it is not waited for."""


@click.command()
@click.argument("name")
@made_options(PoolSettings, ClassifySettings, JobOptions, without=(*pools.OF_JOBS, "capability_wait"))
@service_options
@click.option("--wait", is_flag=True, help="Wait until its workers are ready.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def up(home: Path, /, name: str, wait: bool, as_json: bool, **options: Any) -> None:
    """Start a pool: a worker on each node, with its network loaded, which does jobs one after another or at once.

    It gives its nodes back when it had no job or picture for --idle, at once those that YARN wants for other queues.

    Without --master-memory, its application master has 1 GB, which is enough for jobs with 384,000 files together.

    \b
    Example:
      nodewise pool up photos --engine onnx --model photos.onnx --vcores 2 --idle 2h --wait
    """
    hadoop, ready = take_hadoop(options), list[str]()
    keep = click.get_current_context().with_resource
    options["model"] = fetch_model(options["model"], lambda: options["service"].client(home), keep)
    settings = collect(PoolSettings, options, name=check_name(name))
    job = collect(ClassifySettings, options, input="/", output="/", capability="")
    settings.check()
    asked = classify.Request(job, collect(JobOptions, options), access(home, options["service"]))
    submitter = session(home, hadoop)
    _check_name_is_free(submitter, name)
    asked, _ = classify.check_nodes(submitter, asked)
    asked = classify.check_network(submitter, asked)
    application_id = submitter.submit(pools.order(settings, classify.order(submitter, asked)))
    _check_name_is_free(submitter, name, application_id)  # another command may have been as far at the same moment
    said = f"comes up: `nodewise pool show {name}` shows which of its workers are ready"
    if wait:
        ready = _wait(submitter, application_id, settings)
        said = f"is ready on {len(ready)} {'node' if len(ready) == 1 else 'nodes'}: {', '.join(ready)}"
    body = {"name": name, "job_id": application_id, "ready": ready}
    show(as_json, body, f"{application_id}: the pool {name} {said}")


def _check_name_is_free(submitter: Submitter, name: str, application_id: str = "") -> None:
    """JobError when there is such a pool that is older than this application, which is ended then."""
    if older := Pools(submitter.conf_dir, submitter.user).find_older(name, application_id):
        if application_id:
            submitter.kill(application_id)
        raise JobError(
            f"there is a pool {name} already: {older.application_id}",
            remedy=f"use it, choose another name, or end it with `nodewise pool down {name}`",
        )


def _wait(submitter: Submitter, application_id: str, settings: PoolSettings) -> list[str]:
    """The nodes whose worker is ready, once all are, or some have been for a while; JobError when the pool ends."""
    first, said = None, ""
    while not (application := submitter.yarn.application(application_id)).has_ended:
        status = ask(application)
        nodes = status.nodes if status and status.state == "running" else ()
        ready = [node.node_name for node in nodes if node.said == READY]
        if ready:
            first = first or time.monotonic()
            if len(ready) >= (settings.most_nodes or len(nodes)) or time.monotonic() - first > LATE_SECONDS:
                return ready
        told = f"{len(ready)} of {len(nodes)} workers are ready" if nodes else "its application master is not up yet"
        if told != said:
            said = told
            progress_console.print(said, style="dim")
        time.sleep(PAUSE_SECONDS)
    submitter.follow(application_id, lambda _: None)
    raise JobError(f"{application_id} has ended: {application.diagnostics}")
