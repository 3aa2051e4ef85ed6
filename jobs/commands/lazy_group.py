"""A command group whose commands are imported when they are asked for: no command pays for what another one needs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

WHOLE = 1000
"""More characters than the first sentence of any command's help has."""


class LazyGroup(click.Group):
    """Knows for each command where it is: name -> `module:attribute`. It may have commands of its own beside them."""

    def __init__(self, *arguments: Any, places: Mapping[str, str], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._places = dict(places)
        self._changes: dict[str, Callable[[click.Command], None]] = {}

    def change(self, name: str, change: Callable[[click.Command], None]) -> None:
        """Have this done to a command as soon as it is imported."""
        self._changes[name] = change

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names: in the order of the listing, or of the alphabet where there are commands of its own."""
        own = super().list_commands(ctx)
        return sorted([*own, *self._places]) if own else list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One command, None when there is none of this name."""
        if cmd_name not in self._places:
            return super().get_command(ctx, cmd_name)
        found: click.Command = _at(self._places[cmd_name])
        if cmd_name in self._changes:
            self._changes[cmd_name](found)
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
            raise click.exceptions.NoSuchCommand(
                error.command_name, possibilities=self.list_commands(ctx), ctx=ctx
            ) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Names come from the list, so that completing one imports no other; what they do is told by --help."""
        names = [CompletionItem(name) for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)


def _at(place: str) -> Any:
    """What stands at `module:attribute`."""
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)
