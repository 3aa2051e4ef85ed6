"""How soon a node has an environment."""

from __future__ import annotations

import pytest

from environments.manifest import Manifest, Part
from environments.ready import Way, find_ready, find_warm, read_cached

BASE, TORCH = Part("/opt/base", "a1" * 32, 50_000_000), Part("/opt/env", "b2" * 32, 200_000_000)
MANIFEST = Manifest("torch", "1.13", "3.11", [BASE, TORCH])
HAS_BASE = {BASE.sha256[:16]: BASE.size_bytes}
HAS_ALL = HAS_BASE | {TORCH.sha256[:16]: TORCH.size_bytes}
WAY = Way(100e6, is_assumed=False)


@pytest.mark.parametrize(
    ("cached", "missing", "seconds", "said"),
    [
        (HAS_ALL, 0, 0.0, "has it already"),
        (HAS_BASE, 200_000_000, 2.0, "fetches 200 MB in about 2 s"),
        ({}, 250_000_000, 2.5, "fetches 250 MB in about 2.5 s"),
        (HAS_ALL | {BASE.sha256[:16]: 7}, 50_000_000, 0.5, "fetches 50 MB in about 0.5 s"),
        (None, 250_000_000, 2.5, "fetches 250 MB in about 2.5 s, if it lacks all: it does not tell"),
    ],
)
def test_what_a_node_lacks_takes_as_long_as_its_way_is_slow(
    cached: dict[str, int] | None, missing: int, seconds: float, said: str
) -> None:
    ready = find_ready(MANIFEST.parts, cached, WAY)

    assert (ready.missing_bytes, ready.seconds, ready.text) == (missing, seconds, said)
    assert ready.is_there == (cached == HAS_ALL)


def test_an_assumed_rate_is_called_so() -> None:
    assert find_ready(MANIFEST.parts, HAS_BASE, Way(100e6, is_assumed=True)).text.endswith("at an assumed rate")


def test_warm_nodes_are_those_with_all_parts() -> None:
    assert find_warm(MANIFEST, {"n3": HAS_ALL, "n2": HAS_BASE, "n1": HAS_ALL, "n4": {}}) == ["n1", "n3"]


@pytest.mark.parametrize("value", ["", "x", "[]", '{"a": "b"}', '{"a": true}', "null", "[" * 50_000])
def test_a_value_that_makes_no_sense_counts_for_nothing(value: str) -> None:
    assert read_cached(value) is None
