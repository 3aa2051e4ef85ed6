"""Spans of time as people write them."""

from __future__ import annotations

import re
from typing import Any

import click

_SPAN = re.compile(r"([0-9]{1,10}(?:\.[0-9]{1,9})?)([smhdw]?)")
_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}


class Span(click.ParamType[float]):
    """Seconds, or a number with s, m, h, d or w behind it: 90, 1.5h, 30d."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The span in seconds."""
        match = _SPAN.fullmatch(str(value).strip())
        if match is None:
            self.fail(f"{value!r} is not a span of time: give seconds, or a number with s, m, h, d or w", param, ctx)
        return float(match[1]) * _SECONDS[match[2]]


class Seconds(click.FloatRange):
    """Seconds within limits, or a span of time as people write it."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds."""
        try:
            seconds = float(value)
        except ValueError:
            seconds = Span().convert(value, param, ctx)
        return float(super().convert(seconds, param, ctx))
