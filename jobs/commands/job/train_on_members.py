"""`nodewise job train --members`: AlexNet learns on several nodes, by a run as `nodewise train submit` makes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from hadoop.installation import ROOT
from jobs.application.job_spec import JobOptions
from jobs.application.submit import Order, Submitter
from jobs.commands import other_python
from jobs.commands.job import attend
from jobs.commands.made_options import FILE, Megabytes, collect, made_options
from jobs.commands.options import hadoop_home, hadoop_options, progress_console, session, take_hadoop
from jobs.commands.request_options import COLD_START, access
from jobs.commands.service_options import service_options
from jobs.kinds.train import request as training
from jobs.kinds.train.settings import TrainSettings

PROGRAM = ROOT / "jobs" / "kinds" / "train" / "alexnet" / "train_alexnet.py"
HERE = "jobs.kinds.train.alexnet.this_machine"
HDFS = "hdfs://"
MEMORY = "3g"
"""What a member needs for AlexNet, its gradient, and two moments of each of its 57 million numbers."""
OWN = ("members", "files", "memory_mb", "worker_python")
"""Settings of a run that this command gives in its own way."""
ALSO_ALONE = ("directory", "weights", "int8", "seed", "steps", "as_json", "worker_python")
"""Parameters of the command that it takes without --members, too."""


@dataclass(frozen=True, kw_only=True)
class Learning:
    """What is to be learned: `images` are a folder of HDFS, `labels` the table of its classes, if it has one."""

    images: str
    labels: Path | None
    weights: Path
    int8: Path | None
    seed: int
    steps: int | None

    def words(self, labels: str | None) -> list[str]:
        """For the program of the members, and for what comes before and after it; `labels` is its name there."""
        found = [self.images, f"--seed={self.seed}"]
        found += [f"--labels={labels}"] if labels else []
        return found + ([f"--steps={self.steps}"] if self.steps else [])

    def words_here(self) -> list[str]:
        """The same on this machine, with what is to be written."""
        int8 = [f"--int8={self.int8}"] if self.int8 else []
        return [*self.words(str(self.labels) if self.labels else None), f"--weights={self.weights}", *int8]


def members_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that go with --members: those of a training run."""
    for option in (
        hadoop_options,
        service_options,
        made_options(TrainSettings, JobOptions, without=OWN),
        click.option(
            "--memory", "memory_mb", type=Megabytes(1024), default=MEMORY, show_default=True, help="Of each member."
        ),
        click.option("--labels", type=FILE, help="The labels.tsv of the images in HDFS, unless sub-folders say it."),
        click.option(
            "--members",
            metavar="N|N:M",
            help="Train on so many nodes, or at least N and at most M; what follows goes with it.",
        ),
    ):
        command = option(command)
    return command


def check_alone(images: str, members: str | None) -> None:
    """A usage error for options that go with --members without it, or images that it cannot read."""
    if members is not None:
        if not images.startswith(HDFS):
            raise click.UsageError(
                f"members read images from HDFS, and {images} is a folder of this machine: put it there "
                f"(nodewise images load {images} hdfs:///data/images), and name that folder"
            )
        return
    if images.startswith(HDFS):
        raise click.UsageError(f"{images} is in HDFS: say how many nodes learn from it with --members")
    context = click.get_current_context()
    for one in context.command.params:
        is_given = context.get_parameter_source(one.name or "") is ParameterSource.COMMANDLINE
        if is_given and one.name not in ALSO_ALONE:
            raise click.UsageError(f"{one.opts[0]} goes with --members")


def train_on_members(home: Path, what: Learning, worker_python: str, options: dict[str, Any]) -> dict[str, Any]:
    """What was made, as without members; JobError when the run fails, or cannot be."""
    began = time.monotonic()
    hadoop = take_hadoop(options)
    asked = request(home, what, worker_python, options)
    training.check_words(asked.settings)
    where = hadoop_home(home, **hadoop)
    variables = {"HADOOP_CONF_DIR": str(where.conf_dir), "HADOOP_USER_NAME": where.user}
    submitter = session(home, hadoop)
    order = training.check(submitter, asked)
    other_python.run(worker_python, HERE, ["check", *what.words_here()], variables)
    job_id = _follow(submitter, order)
    output = submitter.path(asked.settings.output)
    made = other_python.run(worker_python, HERE, ["finish", *what.words_here(), f"--output={output}"], variables)
    return made | {
        "seconds": round(time.monotonic() - began, 1),
        "members": asked.settings.members,
        "job_id": job_id,
        "output": output,
    }


def request(home: Path, what: Learning, worker_python: str, options: Mapping[str, Any]) -> training.TrainRequest:
    """The run in which members learn it, by the values of the options."""
    given = {**options, "worker_python": worker_python, "cold_start": options["cold_start"] or COLD_START}
    given["files"] = [str(PROGRAM), *([str(what.labels)] if what.labels else [])]
    argv = ["python", PROGRAM.name, *what.words(what.labels.name if what.labels else None)]
    settings = collect(TrainSettings, given, argv=argv)
    return training.TrainRequest(settings, collect(JobOptions, given), access(home, options["service"]))


def _follow(submitter: Submitter, order: Order) -> str:
    """Submit the run and wait for its end; its id."""
    job_id = submitter.submit(order)
    attend.attend(submitter, job_id, progress_console)
    return job_id
