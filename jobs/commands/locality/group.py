"""`nodewise locality`."""

from __future__ import annotations

import click

from jobs.commands.locality.locality_blocks import blocks
from jobs.commands.locality.locality_cost import cost
from jobs.commands.locality.locality_plan import plan
from jobs.commands.locality.locality_replay import replay


@click.group()
def locality() -> None:
    """Show where data lies and what reading it costs; compare ways to divide the work.

    \b
    Example:
      nodewise locality blocks hdfs:///data/images
      nodewise locality plan hdfs:///data/images --capability perf_history --explain
    """


for command in (blocks, cost, plan, replay):
    locality.add_command(command)
