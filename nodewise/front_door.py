"""The group of all groups: it gives --watch to the listings that can be shown again and again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from jobs.commands.lazy_group import LazyGroup


class FrontDoor(LazyGroup):
    """Knows the place of each group or command, and which get --watch, of a group some."""

    def __init__(self, *arguments: Any, watched: Mapping[str, Sequence[str]], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._watched = dict(watched)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One group or command, None when there is none of this name."""
        found = super().get_command(ctx, cmd_name)
        names = self._watched.get(cmd_name, ())
        if isinstance(found, click.Group):
            for name in names:
                if name in found.commands or not isinstance(found, LazyGroup):
                    _watch(found.commands[name])
                else:
                    found.change(name, _watch)
        elif found and cmd_name in self._watched:
            _watch(found)
        return found


def _watch(command: click.Command) -> None:
    from nodewise.watch import watchable  # whoever completes words needs none of it

    watchable(command)
