"""The options that name the information service, the same for every command that asks it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from infosvc.wire.client import DEFAULT_URL


def service_options(token_for: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """--url, --token-file and --ca-file; `token_for` says what the token is needed for."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in (
            click.option(
                "--ca-file",
                type=click.Path(exists=True, dir_okay=False, path_type=Path),
                envvar="NODEWISE_CA_FILE",
                help="Authority of an https information service.  [env: NODEWISE_CA_FILE]",
            ),
            click.option("--token-file", type=click.Path(path_type=Path), envvar="NODEWISE_TOKEN_FILE", help=token_for),
            click.option(
                "--url", envvar="NODEWISE_URL", default=DEFAULT_URL, show_default=True, help="Information service."
            ),
        ):
            command = option(command)
        return command

    return add
