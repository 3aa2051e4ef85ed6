"""Which GPUs will do, and what is said of those that will not."""

from __future__ import annotations

import json

import pytest

from boxes.gpus.cards import Card, Wanted, find_mismatch, find_obstacle, read_told

T4 = Card(0, "Tesla T4", 15360, "7.5")
A100 = Card(1, "NVIDIA A100-SXM4-40GB", 40960, "8.0")


@pytest.mark.parametrize(
    ("wanted", "card", "why"),
    [
        (Wanted(1), Card(0), ""),
        (Wanted(1, model="t4"), T4, ""),
        (Wanted(1, model="A100 sxm4"), A100, ""),
        (Wanted(1, model="T4"), Card(0, "NVIDIA T400", 4096, "7.5"), "is not a T4"),
        (Wanted(1, model="H100"), A100, "is not a H100"),
        (Wanted(1, model="T4"), Card(0), "is not a T4"),
        (Wanted(1, memory_mb=16 * 1024), T4, ""),
        (Wanted(1, memory_mb=17 * 1024), T4, "has 15,360 MB, not 17,408 MB"),
        (Wanted(1, memory_mb=1), Card(0, "Tesla T4"), "does not tell its memory, not 1 MB"),
        (Wanted(1, capability="7.5"), T4, ""),
        (Wanted(1, capability="7.10"), T4, "has compute capability 7.5, not 7.10"),
        (Wanted(1, capability="10.0"), A100, "has compute capability 8.0, not 10.0"),
        (Wanted(1, capability="7.0"), Card(0, "Tesla T4"), "tells no compute capability, not 7.0"),
    ],
)
def test_a_card_will_do_by_model_memory_and_capability(wanted: Wanted, card: Card, why: str) -> None:
    assert find_mismatch(wanted, card) == why


@pytest.mark.parametrize(
    ("wanted", "cards", "why"),
    [
        (Wanted(2), [T4, A100], ""),
        (Wanted(0), [], ""),
        (Wanted(1), None, ""),
        (Wanted(1, model="T4"), None, "it tells nothing of its GPUs"),
        (Wanted(1), [], "it has no GPUs, and 1 is asked for"),
        (Wanted(3), [T4, A100], "it has 2 GPUs, and 3 are asked for"),
        (Wanted(1, capability="8.0"), [T4, A100], ""),
        (
            Wanted(2, capability="8.0"),
            [T4, A100],
            "1 of its 2 GPUs will do, and 2 are asked for: GPU 0, Tesla T4, has compute capability 7.5, not 8.0",
        ),
        (
            Wanted(1, model="H100"),
            [T4, A100],
            "none of its 2 GPUs will do, and 1 is asked for: GPU 0, Tesla T4, is not a H100",
        ),
        (
            Wanted(1, model="H100"),
            [A100],
            "its only GPU will not do, and 1 is asked for: GPU 1, NVIDIA A100-SXM4-40GB, is not a H100",
        ),
    ],
)
def test_a_node_is_left_out_with_its_reason(wanted: Wanted, cards: list[Card] | None, why: str) -> None:
    assert find_obstacle(wanted, cards) == why


def test_what_the_collector_tells_is_read_and_anything_else_is_nothing() -> None:
    told = {"index": 1, "model": "NVIDIA A100-SXM4-40GB", "memory_total_bytes": 40960 << 20, "memory_free_bytes": 5}
    more = {"utilisation_ratio": None, "compute_capability": "8.0", "processes": 2}

    assert read_told(json.dumps([told | more])) == [A100]
    assert read_told(json.dumps([told | {"memory_total_bytes": None, "compute_capability": ""}])) == [
        Card(1, "NVIDIA A100-SXM4-40GB")
    ]
    others = ["", "2", "null", "[1]", '{"index": 0}', '[{"model": "T4"}]', '[{"index": "x"}]', '[{"index": 1e999}]']
    for text in (*others, "[" * 50_000):
        assert read_told(text) is None, text[:40]
