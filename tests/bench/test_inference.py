"""What is made of measured rounds: medians, ratios within a round, and one row for every way."""

from __future__ import annotations

from typing import Any

from bench.inference import table

MACHINE = {"cores": 2, "cpu": "some", "memory_bytes": 2**33}


def scene(**speeds: list[float]) -> dict[str, list[dict[str, float]]]:
    """Rounds of each way at these speeds, or at 10 images/s: 100 pictures."""
    rounds = len(next(iter(speeds.values())))
    every = {way: speeds.get(way, [10.0] * rounds) for way in table.WAYS}
    return {way: [{"images_per_second": s, "seconds": 100 / s} for s in values] for way, values in every.items()}


def test_a_ratio_is_the_median_of_the_rounds_and_not_the_ratio_of_medians() -> None:
    found = scene(nodewise=[10.0, 40.0, 90.0], ceiling=[20.0, 40.0, 100.0])

    assert table.ratio(found, "nodewise", "ceiling", "images_per_second") == 0.9


def test_each_way_has_a_row_in_each_scene_and_says_what_a_picture_costs_beside_the_ceiling() -> None:
    record: dict[str, Any] = {
        "date": "2026-01-01",
        "pictures": "100",
        "engine": "mxnet_alexnet",
        "batch": "32",
        "machine": MACHINE,
        "load_before": 0.5,
        "steal_ratio": 0.01,
        "scenes": {"even": scene(ceiling=[20.0]), "uneven": scene(ceiling=[20.0], spark=[5.0])},
    }

    text = table.markdown(record)

    even, uneven = text.split("## Uneven nodes")
    for way in table.WAYS.values():
        assert f"| {way} |" in even and f"| {way} |" in uneven
    assert f"| {table.WAYS['nodewise']} | 10.0 | 10.0 |" in even
    assert even.count("| 50.00 |") == len(table.WAYS) - 1  # 1/10 s beside 1/20 s
    assert "nodewise reaches 50% of the ceiling" in even
    assert f"{table.WAYS['spark']}: 2.00 times its makespan" in uneven
