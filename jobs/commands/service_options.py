"""The options that name the information service, the same for every command that asks it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from infosvc.wire.service_options import ServiceOption, add_service_options


def service_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--url, --token-file and --ca-file, which arrive together as `service`."""
    return add_service_options(command, _click_option)


def _click_option(option: ServiceOption) -> Callable[[Any], Any]:
    return click.option(
        option.flag,
        type=click.Path(dir_okay=False, path_type=Path) if option.is_file else None,
        envvar=option.variable,
        default=option.default,
        show_default=option.default is not None,
        help=option.help,
    )
