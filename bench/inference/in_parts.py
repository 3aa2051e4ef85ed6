"""The bench of pools in parts: one run of it, whose readings are kept, and the sum of those that are."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import spark
from bench.inference import total
from bench.inference.pieces import PIECES, Place
from bench.info import machine
from bench.info.errors import BenchError
from bench.kept import RESULTS, tell
from bench.noting import measure_pieces
from bench.parts import DIRTY, Part, describe_commit, read_parts
from bench.telling import tell_sum
from hadoop.client.jars import JARS

ENGINE, BATCH = "mxnet_alexnet", 8
"""What is kept was measured with these."""


@dataclass(frozen=True)
class Options:
    """What the command line asks for; None is the usual."""

    part: Part | None
    names: tuple[str, ...]
    seed: int
    rounds: int | None
    is_quick: bool
    engine: str
    weights: Path | None
    batch: int | None
    has_spark: bool
    home: Path | None

    @property
    def is_whole(self) -> bool:
        """Whether all is as usual, so that the result can be summed up with others."""
        usual = (self.engine, self.batch or BATCH) == (ENGINE, BATCH) and not self.weights
        return usual and self.has_spark and not (self.names or self.rounds or self.is_quick)


def run(options: Options, output: Path | None, as_json: bool) -> int:
    """Measure a part, tell and keep it; 1 when something of it failed. BenchError when it cannot begin."""
    if options.is_whole and describe_commit().endswith(DIRTY):
        raise BenchError("files differ from the commit, so nobody could tell what was measured: commit them first")
    part = options.part or Part(1, 1)
    record = _measure(options, part, part.take(options.names or [*PIECES]))
    # A part without a reading must not count in place of an earlier one.
    folder = output or (RESULTS if options.is_whole else None) if record["readings"] else None
    tell("inference", record, total.markdown([record], record["date"]), as_json, folder)
    return int(bool(record["failed"]))


def sum_up(commits: str, output: Path | None, as_json: bool) -> int:
    """Tell the sum of the kept parts of a range of commits; 1 when a goal is missed."""
    return int(tell_sum(total, read_parts(output or RESULTS, "inference", commits), commits, as_json))


def _measure(options: Options, part: Part, chosen: Sequence[str]) -> dict[str, Any]:
    commit, versions = describe_commit(), machine.versions() | machine.hadoop(JARS) | spark.version()
    since, began = machine.Since(), time.monotonic()
    batch = options.batch or BATCH
    # Whoever has not ended yet may still write there, which must not cost what was measured.
    with tempfile.TemporaryDirectory(prefix="bench-inference-", ignore_cleanup_errors=True) as folder:

        def make(name: str) -> Place:
            return Place(
                home=(options.home or Path(folder)) / name.removesuffix("-cold"),  # with the same images
                engine=options.engine,
                weights=options.weights,
                batch=batch,
                chance=random.Random(f"{options.seed}/{name}"),  # noqa: S311 - an experiment that can be repeated
                rounds=1 if options.is_quick else options.rounds,
                is_quick=options.is_quick,
                has_spark=options.has_spark,
            )

        readings, failed = measure_pieces(chosen, PIECES, make)
    return since.heading(RESULTS, versions) | {
        "commit": commit,
        "seed": options.seed,
        "part": part,
        "on": "local",
        "shape": f"{options.engine}, batch {batch}",
        "pieces": list(chosen),
        "seconds": time.monotonic() - began,
        "readings": readings,
        "failed": failed,
    }
