"""The commands of `nodewise job` that are one kind's own, each imported when it is asked for.

To give a kind a command line: a file here with a click command, and a line below.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

KIND_COMMANDS: Mapping[str, str] = {
    "run": "jobs.commands.job_run:run",
}
"""The name after `nodewise job`  ->  module:command."""


class JobGroup(click.Group):
    """A group that knows the commands of the kinds beside its own."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the alphabet."""
        return sorted([*super().list_commands(ctx), *KIND_COMMANDS])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One command, None when there is none of this name."""
        if cmd_name not in KIND_COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, _, made = KIND_COMMANDS[cmd_name].partition(":")
        found: Any = getattr(import_module(module), made)
        return found if isinstance(found, click.Command) else None
