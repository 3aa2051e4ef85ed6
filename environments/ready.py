"""How long a node takes until it has an environment: what it lacks of it, by the rate at which it gets bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from environments.manifest import Manifest, Part

CACHED = "env_cached"
"""Data name of the parts that a node keeps: their bytes by the first digits of their hashes."""
DIGITS = 16
"""Of a hash that nodes tell."""


@dataclass(frozen=True)
class Way:
    """How fast a node gets bytes from HDFS (bytes per second), and whether that is assumed, as nothing is measured."""

    bytes_per_second: float
    is_assumed: bool


@dataclass(frozen=True)
class Ready:
    """What a node lacks of an environment in bytes, and the seconds until it has that.

    A node that does not tell what it has (`is_known`) counts as one that lacks all of it.
    """

    missing_bytes: int
    seconds: float
    is_assumed: bool
    is_known: bool

    @property
    def is_there(self) -> bool:
        """Whether the node has all of it already."""
        return self.is_known and not self.missing_bytes

    @property
    def text(self) -> str:
        """In words, for people."""
        if self.is_there:
            return "has it already"
        of_what = ", at an assumed rate" if self.is_assumed else ""
        said = f"fetches {self.missing_bytes / 1e6:.3g} MB in about {self.seconds:.2g} s{of_what}"
        return said if self.is_known else f"{said}, if it lacks all: it does not tell"


def read_cached(value: str) -> dict[str, int] | None:
    """The bytes of each part by the digits that a node tells, None where the value is nothing of the kind."""
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not all(type(one) is int for one in found.values()):
        return None
    return found


def find_ready(parts: Iterable[Part], cached: Mapping[str, int] | None, way: Way) -> Ready:
    """When a node has these parts of an environment: `cached` are those that it keeps, None where it does not tell.

    A part of another size counts as one that is not there.

    >>> two = [Part("/opt/env", "a" * 64, 225_000_000), Part("/opt/more", "b" * 64, 1_000)]
    >>> find_ready(two, {"b" * 16: 1_000}, Way(112.5e6, is_assumed=False)).text
    'fetches 225 MB in about 2 s'
    """
    missing = _missing_bytes(parts, cached or {})
    return Ready(missing, missing / way.bytes_per_second, way.is_assumed, cached is not None)


def find_warm(manifest: Manifest, cached: Mapping[str, Mapping[str, int]]) -> list[str]:
    """The nodes, of those that tell what they keep, that have all of an environment; sorted."""
    return sorted(node for node, parts in cached.items() if not _missing_bytes(manifest.parts, parts))


def _missing_bytes(parts: Iterable[Part], cached: Mapping[str, int]) -> int:
    return sum(one.size_bytes for one in parts if cached.get(one.sha256[:DIGITS]) != one.size_bytes)
