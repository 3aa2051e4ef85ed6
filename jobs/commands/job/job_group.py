"""`nodewise job`: lists its commands, each imported when it is asked for.

To give a kind of job a command of its own: a file here with a click command, and a line below.
"""

from __future__ import annotations

import click

from jobs.commands.lazy_group import LazyGroup

JOB_COMMANDS = {
    "explain": "jobs.commands.job.job_explain:explain",
    "kill": "jobs.commands.job.job_kill:kill",
    "list": "jobs.commands.job.job_list:list_",
    "logs": "jobs.commands.job.job_logs:logs",
    "quantize": "jobs.commands.job.job_train:quantize",
    "report": "jobs.commands.job.job_report:report",
    "result": "jobs.commands.job.job_result:result",
    "resume": "jobs.commands.job.job_resume:resume",
    "run": "jobs.commands.job.job_run:run",
    "status": "jobs.commands.job.job_status:status",
    "submit": "jobs.commands.job.job_submit:submit",
    "train": "jobs.commands.job.job_train:train",
}
"""The name after `nodewise job`  ->  module:command."""


@click.group(cls=LazyGroup, places=JOB_COMMANDS)
def job() -> None:
    """Run jobs on YARN: classify images in HDFS (submit), or run a program on the best nodes (run).

    \b
    Example:
      nodewise job submit --input hdfs:///data/images --output hdfs:///out/run1 --capability perf_history --wait
      nodewise job report hdfs:///out/run1
      nodewise job run --copies 3 --capability perf_cpu -- ./program args
    """
