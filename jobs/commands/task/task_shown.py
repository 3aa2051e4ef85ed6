"""How the commands for tasks show what they have found."""

from __future__ import annotations

import json
import sys
from typing import Any

import click
from rich.console import Console

PIPE_WIDTH = 200  # wide enough for every table, so that a file or pipe gets one line a row
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def console() -> Console:
    """Where tables go: the terminal, a file or a pipe."""
    return Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)


def short(number: float | None) -> str:
    """A number with as many digits as one compares, empty for none."""
    return "" if number is None else f"{number:.6g}"


def print_json(body: Any) -> None:
    """Print it in lines."""
    click.echo(json.dumps(body, indent=1))
