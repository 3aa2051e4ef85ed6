"""The options that name the information service, the same for every command that asks it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from infosvc.wire.service_options import add_service_options


def service_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--url, --token-file and --ca-file, which arrive together as `service`."""
    return add_service_options(command, click.option, click.Path(dir_okay=False, path_type=Path))
