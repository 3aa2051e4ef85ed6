"""What is made of rounds with the plug-in and without."""

from __future__ import annotations

from bench.background import table

MACHINE = {"cores": 2, "cpu": "some"}


def one(without: float, on_busy: int, with_it: float) -> dict[str, dict[str, float]]:
    return {
        "without": {"seconds": without, "containers": 3, "on_busy": on_busy},
        "with": {"seconds": with_it, "containers": 4, "on_busy": 0},
    }


def test_the_ratio_is_the_median_of_the_rounds() -> None:
    assert table.ratio([one(20, 0, 10), one(30, 0, 10), one(40, 0, 40)]) == 2.0


def test_each_application_has_a_row_with_where_its_containers_were() -> None:
    text = table.markdown(
        {
            "date": "2026-01-01",
            "machine": MACHINE,
            "load_before": 0.5,
            "steal_ratio": 0.01,
            "containers": 3,
            "programs": 4,
            "rounds": {"shell": [one(20, 2, 10), one(40, 3, 10)], "spark": [one(30, 1, 30)]},
            "followed": {"with": {"spark": [True, True]}, "without": {"spark": [False, True]}},
        }
    )

    assert "| Hadoop's distributed shell | 30.0 | 5 of 6 | 10.0 | 0 of 8 | 3.00 |" in text
    assert "| Spark | 30.0 | 1 of 3 | 30.0 | 0 of 4 | 1.00 |" in text
    assert "| Spark | 2 of 2 | 1 of 2 |" in text
