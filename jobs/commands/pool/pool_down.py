"""`nodewise pool down`: the end of a pool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from jobs.commands.options import console, hadoop_options, page_reader
from jobs.kinds.pool.client import Pools


@click.command()
@click.argument("name")
@click.option("--now", is_flag=True, help="Kill its jobs instead of waiting for their ends.")
@hadoop_options
@click.pass_obj
def down(home: Path, /, name: str, now: bool, **hadoop: Any) -> None:
    """End a pool of your own: it takes no more jobs, and gives its nodes back once those that it has are done.

    \b
    Example:
      nodewise pool down photos --now
    """
    where = page_reader(home, hadoop)
    jobs = Pools(where.conf_dir, where.user).find(name).go_down(now)
    its = "its job is" if jobs == 1 else f"its {jobs} jobs are"
    once = f" once {its} {'killed' if now else 'done'}" if jobs else ""
    console.print(f"the pool {name} goes down{once}")
