"""`nodewise train`: lists its commands, each imported when it is asked for."""

from __future__ import annotations

import click

from jobs.commands.lazy_group import LazyGroup

TRAIN_COMMANDS = {
    "kill": "jobs.commands.training.train_jobs:kill",
    "local": "jobs.commands.training.train_local:local",
    "logs": "jobs.commands.training.train_jobs:logs",
    "report": "jobs.commands.training.train_report:report",
    "resume": "jobs.commands.training.train_resume:resume",
    "status": "jobs.commands.training.train_jobs:status",
    "stop": "jobs.commands.training.train_stop:stop",
    "submit": "jobs.commands.training.train_submit:submit",
}
"""The name after `nodewise train`  ->  module:command; a run is a job, whose commands serve it, too."""


@click.group(cls=LazyGroup, places=TRAIN_COMMANDS)
def train() -> None:
    """Train one network on several nodes, which may come, go and fail meanwhile.

    \b
    Example:
      nodewise train local --members 3 -- python train.py
      nodewise train submit --members 2:4 --output hdfs:///out/run1 --file train.py -- python train.py
      nodewise train status application_1700000000000_0001
    """
