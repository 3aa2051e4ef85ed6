"""A command group whose commands are imported when they are asked for: no command pays for what another one needs."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

WHOLE = 1000
"""More characters than the first sentence of any command's help has."""


class LazyGroup(click.Group):
    """Knows for each command where it is: name -> `module:attribute`, and which get --watch, of a group some."""

    def __init__(
        self, *arguments: Any, places: Mapping[str, str], watched: Mapping[str, Sequence[str]], **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self._places = dict(places)
        self._watched = dict(watched)

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """All names, in the order of the listing."""
        return list(self._places)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One command, None when there is none of this name."""
        if cmd_name not in self._places:
            return None
        found: click.Command = _at(self._places[cmd_name])
        if cmd_name in self._watched:
            from nodewise.watch import watchable

            names = self._watched[cmd_name]
            for each in [found.commands[name] for name in names] if isinstance(found, click.Group) else [found]:
                watchable(each)
        for each in (found, *(found.commands.values() if isinstance(found, click.Group) else ())):
            each.short_help = each.get_short_help_str(WHOLE)  # else click cuts sentences off where a line ends
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, and UsageError names what is close among commands that are not imported yet, too."""
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            raise click.exceptions.NoSuchCommand(error.command_name, possibilities=self._places, ctx=ctx) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Names come from the list, so that completing one imports none; what they do is told by --help."""
        names = [CompletionItem(name) for name in self._places if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)


def _at(place: str) -> Any:
    """What stands at `module:attribute`."""
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)
