"""`nodewise job logs`: what the processes of a job have written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click

from hadoop.client import jvm
from hadoop.client.collected_logs import CollectedLog, CollectedLogs
from hadoop.rest import site_files
from hadoop.rest.addresses import namenode_addresses, resourcemanager_addresses
from hadoop.rest.webhdfs import WebHdfs
from jobs.application import following, job_record
from jobs.application import logs as job_logs
from jobs.application.status import ContainerStatus
from jobs.commands.job import attend
from jobs.commands.options import hadoop_home, hadoop_options, page_reader, progress_console
from jobs.job_ids import application_of


@click.command()
@click.argument("job_id")
@click.option("-f", "--follow", "follows", is_flag=True, help="Go on until the job ends.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object per line.")
@hadoop_options
@click.pass_obj
def logs(home: Path, /, job_id: str, follows: bool, as_json: bool, **hadoop: Any) -> None:
    """Print what the application masters and the workers of a job wrote, each line after the name of its node.

    Of a job in a pool these are the pool's, with what they wrote of other jobs.

    A line of stdout follows a |, one of stderr a !, and what nodewise itself says a -. Where YARN collects logs,
    those of an ended job are read from HDFS, the last 64 MiB of each, also when their node is gone.

    \b
    Example:
      nodewise job logs application_1700000000000_0001 -f
    """
    where, job_id = page_reader(home, hadoop), application_of(job_id)
    managers = resourcemanager_addresses(where.conf_dir)

    def list_containers(alive: bool) -> Sequence[ContainerStatus]:
        seen = following.ask_proxy(managers, job_id) if alive else None
        if alive:
            return seen.containers if seen else ()
        record = job_record.load(WebHdfs(namenode_addresses(where.conf_dir), where.user), job_id)
        return record.status.containers if record else ()

    found = job_logs.JobLogs(managers, job_id, where.user, list_containers)
    collects = site_files.collects_logs(where.conf_dir)
    collect = partial(_read_collected, home, hadoop, job_id) if collects else None
    try:
        for line in job_logs.follow(found, collect) if follows else job_logs.printed_lines(found, collect):
            if isinstance(line, str):
                progress_console.print(line, style="dim", soft_wrap=True)
            else:
                click.echo(json.dumps(asdict(line)) if as_json else line)
    except KeyboardInterrupt:
        raise click.exceptions.Exit(attend.INTERRUPTED) from None


def _read_collected(
    home: Path, hadoop: dict[str, Any], job_id: str, owner: str, containers: Sequence[str]
) -> Iterator[CollectedLog]:
    jvm.start(hadoop_home(home, **hadoop))
    yield from CollectedLogs(job_id, owner).read(containers, job_logs.STREAMS)
