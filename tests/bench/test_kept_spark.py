"""A session of Spark that is kept: what its driver is told and says, by drivers of a few lines in place of Spark's."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.inference.kept_spark import KeptSpark
from bench.inference.spark_job import divide
from bench.info.errors import BenchError
from bench.spark import allocate_dynamically

UP = 'import json, sys\nprint("a line of the JVM")\nprint(json.dumps({"session_seconds": 1.0}), flush=True)\n'
ANSWERS = 'for line in sys.stdin:\n    print("7\\n", json.dumps({"told": json.loads(line)}), flush=True)\n'
ENDS = 'sys.exit("no room in YARN")\n'
STANDS_STILL = "import sys\nsys.stdin.read()\n"


@contextmanager
def keep_spark(tmp_path: Path, driver: str, seconds: float = 60.0) -> Iterator[KeptSpark]:
    spark = KeptSpark([sys.executable, "-c", driver], tmp_path / "said", os.environ, seconds)
    try:
        yield spark
    finally:
        spark.close()


def test_jobs_are_done_one_after_the_other_and_other_lines_are_passed_over(tmp_path: Path) -> None:
    with keep_spark(tmp_path, UP + ANSWERS) as spark:
        assert spark.hear() == {"session_seconds": 1.0}
        for slices in (4, 32):
            told = spark.ask("measured", slices, f"/out/{slices}")
            assert told == {"told": {"folder": "measured", "slices": slices, "output": f"/out/{slices}"}}


def test_a_driver_that_ends_is_told_with_its_last_words(tmp_path: Path) -> None:
    with keep_spark(tmp_path, UP + ENDS) as spark:
        spark.hear()
        with pytest.raises(BenchError, match="Spark has ended: no room in YARN"):
            spark.hear()
        with pytest.raises(BenchError, match="Spark has ended: no room in YARN"):
            spark.ask("measured", 4, "/out")


def test_a_driver_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    with (
        keep_spark(tmp_path, STANDS_STILL, seconds=0.2) as spark,
        pytest.raises(BenchError, match="not answered in 0 s"),
    ):
        spark.hear()


def test_with_dynamic_allocation_a_session_begins_with_all_executors_and_never_has_more() -> None:
    told = allocate_dynamically(4)

    assert told["spark.dynamicAllocation.enabled"] == "true"
    assert {told[f"spark.dynamicAllocation.{which}Executors"] for which in ("initial", "max")} == {"4"}


@pytest.mark.parametrize(("pictures", "slices"), [(4200, 128), (100, 12), (3, 8)])
def test_partitions_are_as_large_as_one_another_or_one_larger(pictures: int, slices: int) -> None:
    paths = [str(number) for number in range(pictures)]

    groups = divide(paths, slices)

    assert len(groups) == slices and [path for group in groups for path in group] == paths
    assert {len(group) for group in groups} <= {pictures // slices, pictures // slices + 1}
