"""`nodewise train resume`: a run that was stopped, killed or failed goes on with the program and files that it had."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from jobs.application.job_spec import JobOptions, Settings
from jobs.commands.job import attend
from jobs.commands.made_options import collect, made_options
from jobs.commands.options import hadoop_options, progress_console, session, show, take_hadoop
from jobs.commands.request_options import access
from jobs.commands.service_options import service_options
from jobs.commands.training.train_report import output_of
from jobs.kinds.train import asked as asking
from jobs.kinds.train import request as training
from jobs.kinds.train.settings import TrainSettings

S = TypeVar("S", bound=Settings)
KEPT = ("output", "files")
"""What a run that goes on has as before, as it has its program."""
OPTIONS = {one.name for kind in (TrainSettings, JobOptions) for one in fields(kind)}


@click.command()
@click.argument("output", metavar="OUTPUT|JOB")
@made_options(TrainSettings, JobOptions, without=KEPT)
@service_options
@click.option("--wait", is_flag=True, help="Follow the run until it ends.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@hadoop_options
@click.pass_obj
def resume(home: Path, /, output: str, wait: bool, as_json: bool, **options: Any) -> None:
    """Submit a run again, with the same program, files and settings: it goes on from its newest checkpoint.

    Name it by its output folder or by its id. What options do not say is as it was.

    \b
    Example:
      nodewise train resume hdfs:///out/run1 --members 4:8
    """
    hadoop = take_hadoop(options)
    context = click.get_current_context()
    given = {name for name in options if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    submitter = session(home, hadoop)
    folder = submitter.path(output_of(submitter, output)).rstrip("/")
    asked = asking.read(submitter.filesystem, folder)
    settings = replace(changed(asked.settings, options, given, argv=asked.settings.argv), output=folder)
    if "env" in given:
        settings = replace(settings, parts={})  # what it means now
    job_options = changed(asked.options, options, given)
    with TemporaryDirectory() as local:
        files = {name: Path(local) / name for name in settings.files}
        request = training.TrainRequest(settings, job_options, access(home, options["service"]), files)
        made = training.check(submitter, request)
        asking.check_unfinished(submitter.filesystem, folder, asked)
        asking.fetch(submitter.filesystem, folder, files)
        application_id = submitter.submit(made)
    if wait:
        attend.attend(submitter, application_id, progress_console)
    show(as_json, {"job_id": application_id}, f"{application_id} {'succeeded' if wait else 'submitted'}")


def changed(before: S, options: Mapping[str, Any], given: Collection[str], argv: Sequence[str] | None = None) -> S:
    """The settings with what was given in their place."""
    others = {} if argv is None else {"argv": argv}
    known: Any = before
    now = collect(type(before), options, **others)
    names = {one.name for one in fields(known)} & set(given)
    made: S = replace(known, **{name: getattr(now, name) for name in names})
    return made


for _one in resume.params:
    if isinstance(_one, click.Option) and _one.name in OPTIONS:
        _one.show_default = False  # what is not given is as before
