"""`scripts/bench secure`: what Kerberos and privacy cost, and how long failovers take, as a table that is kept."""

from __future__ import annotations

import random
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from bench.info import machine
from bench.info.errors import BenchError
from bench.kept import RESULTS, tell
from bench.noting import measure_pieces
from bench.parts import DIRTY, Part, PartType, describe_commit, read_parts
from bench.secure import total
from bench.secure.pieces import PIECES
from bench.secure.scene import Place, Size
from bench.telling import say, tell_sum
from hadoop.client.jars import JARS
from hadoop.errors import HadoopError

QUICK = Size(pictures=10, long_pictures=600, files=20)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--part", type=PartType(), default="1/1", help=f"Only this part: 3/{len(PIECES)} is one of {len(PIECES)}."
)
@click.option("--only", "names", multiple=True, type=click.Choice([*PIECES]), help="Only these.  [default: all]")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the order in each round, and of moments.")
@click.option("--rounds", type=click.IntRange(1), help="How often each.  [default: what a part's time allows]")
@click.option("--quick", is_flag=True, help="Few files, one round: shows that it works, measures nothing.")
@click.option("--sum", "commits", metavar="COMMITS", help="Sum up the kept parts of a range of commits: A..B, or HEAD.")
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the clusters, which keeps pictures and files for the next run.  [default: new clusters]",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results.  [default: bench/results; with --only, --rounds or --quick nothing is kept]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(
    part: Part,
    names: tuple[str, ...],
    seed: int,
    rounds: int | None,
    quick: bool,
    commits: str | None,
    home: Path | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Measure what Kerberos and privacy cost a job and a listing, and how long nothing goes on when a master is killed.

    Three clusters stand side by side, without Kerberos, with it, and with privacy of all that is sent; the same job,
    and the same listing of 100,000 files, run on them in turns. Of two services on one MariaDB the active one is killed
    or stands still; so it is beside an agent and YARN's plug-in. In the middle of a job, the active NameNode or
    ResourceManager is killed.

    Each of the parts N/5 takes about ten minutes, and 2/5 twice as long: it makes the files first. Nothing else should
    run meanwhile. A round that fails is told, and the others go on; what was measured before Ctrl-C or SIGTERM is kept.
    It needs MariaDB's server and 7 GB of memory.

    \b
    Examples:
      scripts/bench secure --part 1/5
      scripts/bench secure --only service --rounds 3
      scripts/bench secure --sum HEAD
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything that was started is ended
    is_kept = not (names or rounds or quick)
    try:
        if commits:
            sys.exit(tell_sum(total, read_parts(output or RESULTS, "secure", commits), commits, as_json))
        if is_kept and describe_commit().endswith(DIRTY):
            raise BenchError("files differ from the commit, so nobody could tell what was measured: commit them first")
        record = _measure(part, part.take(names or [*PIECES]), seed, 1 if quick else rounds, quick, home)
    except (BenchError, HadoopError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    # A part without a reading must not count in place of an earlier one.
    folder = output or (RESULTS if is_kept else None) if record["readings"] else None
    tell("secure", record, total.markdown([record], record["date"]), as_json, folder)
    sys.exit(bool(record["failed"]))


def _measure(
    part: Part, chosen: Sequence[str], seed: int, rounds: int | None, quick: bool, home: Path | None
) -> dict[str, Any]:
    commit, versions = describe_commit(), machine.versions() | machine.hadoop(JARS)
    since, began = machine.Since(), time.monotonic()
    size = QUICK if quick else Size()
    # Whoever has not ended yet may still write there, which must not cost what was measured.
    with tempfile.TemporaryDirectory(prefix="bench-secure-", ignore_cleanup_errors=True) as folder:

        def make(name: str) -> Place:
            chance = random.Random(f"{seed}/{name}")  # noqa: S311 - an experiment that can be repeated
            return Place(Path(folder) / name, (home or Path(folder)) / name, size, chance, rounds, say)

        readings, failed = measure_pieces(chosen, PIECES, make)
    return since.heading(RESULTS, versions) | {
        "commit": commit,
        "seed": seed,
        "part": part,
        "on": "local",
        "pieces": list(chosen),
        "size": asdict(size),
        "seconds": time.monotonic() - began,
        "readings": readings,
        "failed": failed,
    }


if __name__ == "__main__":
    main()
