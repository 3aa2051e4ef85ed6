"""What a long bench tells: how far it is, and the table of parts that were measured before."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import click


class Total(Protocol):
    """A bench's module that sums its parts up."""

    def values(self, records: Sequence[Mapping[str, Any]]) -> Mapping[str, float]:
        """The value of each figure that was measured, by its key."""

    def find_missing_goals(self, records: Sequence[Mapping[str, Any]]) -> list[str]:
        """The goals that were not reached or not measured, a sentence each."""

    def markdown(self, records: Sequence[Mapping[str, Any]], title: str) -> str:
        """The table."""


def tell_sum(total: Total, records: Sequence[Mapping[str, Any]], commits: str, as_json: bool) -> bool:
    """Print the sum of parts, and tell whether a goal is missed."""
    missing = total.find_missing_goals(records)
    told = {"values": total.values(records), "missing": missing}
    title = f"{len(records)} parts at {commits}"
    click.echo(json.dumps(told, indent=1) if as_json else total.markdown(records, title))
    return bool(missing)


def say(text: str) -> None:
    """Print a line of progress, with the time of day."""
    click.echo(f"{time.strftime('%H:%M:%S')} {text}", err=True)
