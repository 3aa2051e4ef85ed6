"""Why a measurement could not be made."""

from __future__ import annotations


class BenchError(Exception):
    """What was to be measured did not do its work; the text names it and says where to look."""
