"""The options that all commands of the service share, and the client they make."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from infosvc.commands.spans import Span
from infosvc.shipping.enrolment import NOTHING
from infosvc.wire.client import DEFAULT_URL, InfoClient, read_token
from infosvc.wire.errors import InfoError

F = TypeVar("F", bound=Callable[..., Any])

token_option = click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="NODEWISE_TOKEN_FILE",
    help="File with the service's token.  [env: NODEWISE_TOKEN_FILE; default: HOME/service/token]",
)


class Moment(click.ParamType[float]):
    """A moment in Unix seconds, given as such or as a span of time before now: 90s, 15m, 1h, 7d."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Unix seconds."""
        seconds = Span().convert(value, param, ctx)
        return seconds if str(value).strip()[-1].isdigit() else time.time() - seconds


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


_CA_FILE = "infosvc.ca_file"


def _keep_ca_file(context: click.Context, _option: click.Parameter, path: Path | None) -> None:
    context.meta[_CA_FILE] = path


def given_ca_file() -> Path | None:
    """The file named by --ca-file in the command that runs, None when there is none, NOTHING when it is ''."""
    context = click.get_current_context(silent=True)
    return context.meta.get(_CA_FILE) if context else None


def service_options(command: F) -> F:
    """--url, --token-file and --ca-file: `url` and `token_file` arrive and go into `connect`, which knows the third."""
    url = click.option(
        "--url",
        envvar="NODEWISE_URL",
        default=DEFAULT_URL,
        show_default=True,
        help="The information service.  [env: NODEWISE_URL]",
    )
    ca_file = click.option(
        "--ca-file",
        type=click.Path(dir_okay=False, path_type=Path),
        envvar="NODEWISE_CA_FILE",
        callback=_keep_ca_file,
        expose_value=False,
        help="Authority of an https service's certificate, in PEM form.  "
        "[env: NODEWISE_CA_FILE; default: those of this machine]",
    )
    return url(token_option(ca_file(command)))


def connect(home: Path, url: str, token_file: Path | None) -> InfoClient:
    """A client of the service; without a token it can only read."""
    ca_file = given_ca_file()
    return InfoClient(url, read_token(home, token_file), ca_file=None if ca_file == NOTHING else ca_file)


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
