"""The options that all commands of the service share, and the client they make."""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from infosvc.client import DEFAULT_URL, InfoClient, read_token
from infosvc.errors import InfoError

F = TypeVar("F", bound=Callable[..., Any])

token_option = click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="NODEWISE_TOKEN_FILE",
    help="File with the service's token.  [env: NODEWISE_TOKEN_FILE; default: HOME/service/token]",
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def service_options(command: F) -> F:
    """--url and --token-file, which arrive as `url` and `token_file` and go into `connect`."""
    url = click.option(
        "--url",
        envvar="NODEWISE_URL",
        default=DEFAULT_URL,
        show_default=True,
        help="The information service.  [env: NODEWISE_URL]",
    )
    return url(token_option(command))


def connect(home: Path, url: str, token_file: Path | None) -> InfoClient:
    """A client of the service; without a token it can only read."""
    return InfoClient(url, read_token(home, token_file))


def is_loopback(host: str) -> bool:
    """Whether an address, or the name localhost, is reached from its own machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


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
