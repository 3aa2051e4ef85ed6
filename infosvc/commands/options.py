"""The options that all commands of the service share."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from infosvc.commands.spans import Span
from infosvc.wire.errors import InfoError, NotFound
from infosvc.wire.service_options import TOKEN_FILE, add_service_options

F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(dir_okay=False, path_type=Path)


class Moment(click.ParamType[float]):
    """A moment in Unix seconds, given as such or as a span of time before now: 90s, 15m, 1h, 7d."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Unix seconds."""
        seconds = Span().convert(value, param, ctx)
        return seconds if str(value).strip()[-1].isdigit() else time.time() - seconds


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


token_option = TOKEN_FILE.decorator(click.option, _FILE)


def service_options(command: F) -> F:
    """--url, --token-file and --ca-file, which arrive together as `service`."""

    return cast(F, add_service_options(command, click.option, _FILE))


@contextmanager
def to_be_taken_away(said: str, listing: str) -> Iterator[None]:
    """What is not there need not be made first: NotFound says so, and where the names are that there are."""
    try:
        yield
    except NotFound as error:
        raise NotFound(said, error.field, remedy=f"`{listing}` shows those that there are") from None


def for_each(names: Iterable[str], action: Callable[[str], str]) -> None:
    """Do one thing for every name and say what came of it; exit 1 when it failed for any, after trying all."""
    failed = False
    for name in names:
        try:
            click.echo(f"{name}: {action(name)}")
        except InfoError as error:
            click.echo(f"{name}: {error}", err=True)
            failed = True
    if failed:
        sys.exit(1)
