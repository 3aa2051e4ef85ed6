"""`python -m jobs.commands.submitter`: `nodewise serve --submit` starts it, and starts it again when it ends."""

from __future__ import annotations

import fcntl
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

import click

from hadoop.client import jvm
from hadoop.errors import HadoopError
from hadoop.rest.addresses import resourcemanager_addresses
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Forbidden, InfoError, Unauthorized
from infosvc.wire.service_options import ServiceAddress
from infosvc.wire.tunnel.tunnel_end import TunnelCalls
from jobs.application.submit import InfoAccess, Submitter
from jobs.commands.options import hadoop_home, hadoop_options
from jobs.commands.service_options import service_options
from jobs.errors import JobError
from jobs.submitter.cluster import TaskCluster
from jobs.submitter.doubles import Doubles
from jobs.submitter.moving import Mover
from jobs.submitter.speeds import Speeds
from jobs.submitter.sweeping import Sweeper
from jobs.submitter.tunnels import TunnelCaller
from jobs.submitter.turns import Turns
from jobs.submitter.waking import Waker

PAUSE_SECONDS = 1.0
"""Between two turns, unless a task is new or is to be stopped: YARN tells nobody what becomes of applications."""
AWAY_SECONDS = 5.0
"""Between two attempts at reaching a service or cluster that does not answer."""


@click.command()
@service_options
@hadoop_options
@click.option("--home", type=click.Path(file_okay=False, path_type=Path), required=True, help="As nodewise has it.")
@click.option("--jobs-url", help="Where jobs look for the service  [default: as --url].")
def main(home: Path, jobs_url: str | None, service: ServiceAddress, **hadoop: Any) -> None:
    """Hand the tasks that the information service keeps to YARN, until standard input ends."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    lock = _lock(home)
    client = service.client(home)
    steps = _work(home, hadoop, client, InfoAccess(jobs_url or service.url, None, service.authority))
    waking = service.client(home)
    waker = Waker(waking, TunnelCalls(waking))
    while lock:
        try:
            for step in steps:
                step()
            waker.wait(PAUSE_SECONDS)
        except (Unauthorized, Forbidden) as error:  # whoever starts this again brings another token
            raise click.ClickException(str(error)) from None
        except InfoError as error:
            say(f"the information service does not answer: {error}")
            time.sleep(AWAY_SECONDS)


def _end_with_parent() -> None:
    """End this process with the one that started it, however that ends: no other may hold the pipe."""
    sys.stdin.buffer.read()
    os._exit(0)


def _lock(home: Path) -> TextIO:
    """Wait until no other submitter hands over the tasks of this service."""
    path = home / "service" / "submitter.lock"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = path.open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def _work(home: Path, hadoop: dict[str, Any], client: InfoClient, access: InfoAccess) -> Sequence[Callable[[], object]]:
    """What there is to do again and again in a session with the cluster, once there is one."""
    while True:
        try:
            where = hadoop_home(home, **hadoop)
            # For what a playbook has not written yet, Hadoop's client would take its defaults, and keep them.
            resourcemanager_addresses(where.conf_dir)
            cluster = TaskCluster(Submitter(jvm.start(where), say), access, client)
        except (HadoopError, JobError) as error:
            say(f"there is no cluster yet: {error}")
            time.sleep(AWAY_SECONDS)
        else:
            speeds = Speeds(client, say)
            speeds.start()
            mover = Mover(client, cluster, say)
            turns = Turns(client, cluster, say, speeds, mover)
            doubles, sweeper = Doubles(client, cluster, say), Sweeper(client, cluster, say)
            return turns.turn, doubles.end, TunnelCaller(client, cluster, say).call, sweeper.sweep, mover.look


def say(line: str) -> None:
    """Print a line into the service's own output."""
    click.echo(f"submitter: {line}", file=sys.stderr)


if __name__ == "__main__":
    main()
