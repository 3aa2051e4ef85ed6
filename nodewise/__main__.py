"""`nodewise`: lists the groups of the command, turns our errors into one sentence, and nothing else."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from hadoop.errors import HadoopError
from infosvc.wire.errors import InfoError
from jobs.errors import JobError
from nodewise.front_door import FrontDoor

DEFAULT_HOME = Path("~/.nodewise")
COMMANDS = {
    "cluster": "hadoop.local.command:cluster",
    "serve": "nodewise.serve:serve",
    "producer": "infosvc.commands.producer:producer",
    "node": "infosvc.commands.node:node",
    "slot": "infosvc.commands.slot:slot",
    "data": "infosvc.commands.data:data",
    "top": "infosvc.commands.top:top",
    "token": "infosvc.commands.token:token",
    "login": "nodewise.login:login",
    "alert": "infosvc.commands.alert:alert",
    "audit": "infosvc.commands.audit:audit",
    "images": "jobs.commands.images:images",
    "locality": "jobs.commands.locality.group:locality",
    "env": "jobs.commands.environment:env",
    "job": "jobs.commands.job.job_group:job",
    "pool": "jobs.commands.pool.pool_group:pool",
    "infer": "jobs.commands.pool.infer:infer",
    "notebook": "jobs.commands.notebook:notebook",
    "task": "jobs.commands.task.task_group:task",
    "queue": "jobs.commands.task.task_queue:queue",
    "usage": "nodewise.usage.command:usage",
    "train": "jobs.commands.training.train_group:train",
    "setup": "nodewise.setup.command:setup",
    "doctor": "nodewise.doctor.command:doctor",
    "completion": "nodewise.completion:completion",
    "uninstall": "nodewise.uninstall:uninstall",
}
"""The list of commands; to add one, write its file and name it here."""

WATCHED = {
    "cluster": ["status"],
    "producer": ["list"],
    "node": ["list"],
    "slot": ["list", "log"],
    "data": ["get"],
    "token": ["list"],
    "alert": ["list"],
    "locality": ["blocks", "cost", "plan"],
    "env": ["list"],
    "job": ["list"],
    "pool": ["list"],
    "task": ["list"],
    "queue": [],
}
"""The listings of these groups, or commands, that can be shown again and again: they get --watch."""


@click.group(cls=FrontDoor, places=COMMANDS, watched=WATCHED, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="nodewise")
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="NODEWISE_HOME",
    default=DEFAULT_HOME,
    show_default=True,
    help="Where this machine keeps its cluster, database, keys and token.",
)
@click.pass_context
def cli(ctx: click.Context, home: Path) -> None:
    """Know what every node of a Hadoop cluster can do right now, and send work where it can be done.

    \b
    Example, from nothing to a divided job:
      nodewise cluster up --nodes 4
      nodewise serve &
      nodewise node add -F ~/.nodewise/cluster/ssh/config $(nodewise cluster status --names)
      nodewise job submit --input hdfs:///data/images --output hdfs:///out/run1 --capability perf_cpu --wait
    """
    ctx.obj = home.expanduser().absolute()


def main() -> None:
    """Run the command; our own errors become one sentence and exit status 1."""
    try:
        cli()
    except BrokenPipeError:
        # Whoever read our output has seen enough; keep the interpreter from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if not _is_ours(error):
            raise
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)


def _is_ours(error: Exception) -> bool:
    from locality.types import PlanError  # most commands divide nothing, and need not pay for what does

    return isinstance(error, (HadoopError, InfoError, JobError, PlanError))


if __name__ == "__main__":
    main()
