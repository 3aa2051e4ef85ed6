"""What the commands print: tables for people, JSON for programs.

Rich is imported with the first table: a tenth of what a command costs that prints none.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from infosvc.wire.terminal_text import moment as moment
from infosvc.wire.terminal_text import plain as plain

if TYPE_CHECKING:
    from rich.console import Console

# Wide enough for every table of ours, so that a file or pipe gets one line a row.
PIPE_WIDTH = 200


def as_json(value: Any) -> None:
    """Print records, or whatever else, as indented JSON."""
    click.echo(json.dumps(value, indent=2))


def as_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], empty: str) -> None:
    """Print rows under headings; `empty` is said when there are none."""
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for column in table.columns:
        column.overflow = "fold"
    for row in rows:
        # Text, so that nothing in it is taken for a style.
        table.add_row(*(Text(plain(item)) for item in row))
    if table.row_count:
        console().print(table)
    else:
        click.echo(empty)


def console() -> Console:
    """Where tables go: as wide as the terminal, PIPE_WIDTH elsewhere."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else PIPE_WIDTH)


def seconds(number: float | None) -> str:
    """A duration or age for people; empty for none."""
    if number is None:
        return ""
    if number < 120:
        return f"{number:.1f} s"
    return f"{number / 60:.0f} min" if number < 7200 else f"{number / 3600:.0f} h"
