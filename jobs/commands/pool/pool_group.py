"""`nodewise pool`: lists its commands, each imported when it is asked for."""

from __future__ import annotations

import click

from jobs.commands.lazy_group import LazyGroup

POOL_COMMANDS = {
    "down": "jobs.commands.pool.pool_down:down",
    "list": "jobs.commands.pool.pool_list:list_",
    "show": "jobs.commands.pool.pool_show:show_",
    "up": "jobs.commands.pool.pool_up:up",
}
"""The name after `nodewise pool`  ->  module:command."""


@click.group(cls=LazyGroup, places=POOL_COMMANDS)
def pool() -> None:
    """Keep workers ready for jobs, so that a job begins within a second or two.

    \b
    Example:
      nodewise pool up photos --engine onnx --model photos.onnx --idle 2h
      nodewise job submit --pool photos --input hdfs:///data/images --output hdfs:///out/run1 --capability perf_history
      nodewise pool down photos
    """
