"""`nodewise train local`: the run of a script on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from jobs.kinds.train.local_run import LocalRun
from jobs.kinds.train.settings import check_sync


@click.command("local")
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED, metavar="PROGRAM [ARGUMENT]...")
@click.option("--members", default=2, show_default=True, type=click.IntRange(1, 64), help="How many processes train.")
@click.option(
    "--least", default=1, show_default=True, type=click.IntRange(1, 64), help="With how few of them it goes on."
)
@click.option(
    "--folder",
    default="training",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Keeps the checkpoints; a later run in it goes on from the newest one.",
)
@click.option(
    "--sync",
    metavar="every|local:H|auto",
    help="How often they average: every step, which is exact; or, on thin networks, after H steps of their own "
    "(local:H), or as the network asks for (auto)  [default: as the program says, else every].",
)
def local(argv: Sequence[str], members: int, least: int, folder: Path, sync: str | None) -> None:
    """Train with several processes on this machine, as a run on a cluster does with nodes.

    The program trains in a loop over a `Run` of nodewise.learning. When a process is killed, the others go on. Ctrl-C
    ends all; the same line then goes on from the newest checkpoint.

    \b
    Example:
      nodewise train local --members 3 -- python train.py
    """
    if least > members:
        raise click.UsageError(f"--least {least} is more than --members {members}: take a smaller one")
    if sync is not None:
        check_sync(sync)
    LocalRun(argv, members, least, folder, click.echo, sync).run()
