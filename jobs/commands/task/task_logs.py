"""`nodewise task logs`: what the program of a task has printed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from infosvc.wire.client import InfoClient
from infosvc.wire.service_options import ServiceAddress
from infosvc.wire.tasks import TaskLogPiece
from jobs.application.logs import STREAMS
from jobs.commands.service_options import service_options

LOOK_SECONDS = 0.5  # between two looks


class Printed(NamedTuple):
    """Whole lines of one stream of one start of a task."""

    attempt: int
    stream: str
    text: str


@click.command()
@click.argument("task_id")
@click.option("-f", "--follow", "follows", is_flag=True, help="Go on until the task ends.")
@click.option("--attempt", type=click.IntRange(1), help="Which start of it  [default: the last].")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object per line.")
@service_options
@click.pass_obj
def logs(
    home: Path, /, service: ServiceAddress, task_id: str, follows: bool, attempt: int | None, as_json: bool
) -> None:
    """Print what a task's program has printed: its stdout to stdout, its stderr to stderr.

    What it printed stays when its node is lost, but for the last second.

    \b
    Example:
      nodewise task logs task_0f1e2d3c4b5a6978 -f
    """
    for printed in read(service.client(home), task_id, attempt, follows):
        if as_json:
            for line in printed.text.splitlines():
                click.echo(json.dumps(printed._replace(text=line)._asdict()))
        else:
            click.echo(printed.text, nl=not printed.text.endswith("\n"), err=printed.stream == "stderr")


def read(client: InfoClient, task_id: str, attempt: int | None, follows: bool) -> Iterator[Printed]:
    """What there is, and with `follows` what comes until the task has ended; of a task that begins anew, all starts."""
    shown, offsets = 0, dict.fromkeys(STREAMS, 0)
    while True:
        task = client.task(task_id)
        wanted = attempt or task.attempt or 1
        for number in (shown, wanted) if 0 < shown < wanted else (wanted,):
            if number != shown:
                shown, offsets = number, dict.fromkeys(STREAMS, 0)
            for stream in STREAMS:
                for piece in _pieces(client, task_id, stream, number, offsets[stream]):
                    offsets[stream] = piece.next
                    yield Printed(number, stream, piece.text)
        if task.state.is_final or not follows:
            return
        time.sleep(LOOK_SECONDS)


def _pieces(client: InfoClient, task_id: str, stream: str, attempt: int, offset: int) -> Iterator[TaskLogPiece]:
    """The pieces of a stream that are there from byte `offset` on."""
    has_more = True
    while has_more:
        piece = client.task_log(task_id, stream, attempt, offset)
        if piece.text:
            yield piece
        has_more, offset = piece.more, piece.next
