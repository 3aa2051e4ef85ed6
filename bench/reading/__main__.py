"""`scripts/bench reading`: stores the same pictures as files and packed, reads both in turns, keeps the table."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
from hdfs import InsecureClient

from bench.info import machine
from bench.info.errors import BenchError
from bench.kept import RESULTS, tell
from bench.programs import output, with_jvm
from bench.reading import table
from bench.reading.readers import WORKER, read
from bench.reading.table import PROCESSES, WAYS, Found
from bench.stage import cluster_of
from hadoop.errors import HadoopError
from hadoop.local.lifecycle import Cluster
from jobs.errors import JobError
from jobs.images.datasets import make
from jobs.images.packing import pack

DIFFERENT = 400
"""Pictures that are made; what is read is many files with the content of these in turn."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--images", type=click.IntRange(1), help="How many.  [default: 10000; 200 with --quick]")
@click.option("--quick", is_flag=True, help="Few pictures, one round: shows that the bench works, measures nothing.")
@click.option("--rounds", type=click.IntRange(1), help="Rounds in turns.  [default: 5; 1 with --quick]")
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    help="Home of a cluster to use: started for the run and stopped after it unless it runs already; the pictures "
    "stay there, below /bench, for the next run.  [default: a new one, removed afterwards]",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results.  [default: bench/results; with --quick nothing is kept]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(
    images: int | None, quick: bool, rounds: int | None, home: Path | None, output: Path | None, as_json: bool
) -> None:
    """Measure how many pictures a second a worker reads, as files and packed; storing them takes minutes.

    \b
    Examples:
      scripts/bench reading
      scripts/bench reading --quick
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything that was started is ended
    try:
        with cluster_of(home) as cluster:
            record = _measure(cluster, images or (200 if quick else 10_000), rounds or (1 if quick else 5))
    except (BenchError, HadoopError, JobError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    text = table.markdown(record)
    tell("reading", record, text, as_json, output or (None if quick else RESULTS))


def _measure(cluster: Cluster, count: int, rounds: int) -> dict[str, Any]:
    folder = f"/bench/reading-{count}"
    stored = _store(cluster, folder, count)
    since, found = machine.Since(), []
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        for number in range(1, rounds + 1):
            click.echo(f"round {number} of {rounds}", err=True)
            found.append({way: _way(cluster, f"{folder}/{way}", count, Path(scratch)) for way in WAYS})
    return since.heading(cluster.home, _versions(cluster)) | {
        "images": count,
        "image_bytes": found[0]["packed"]["bytes"] / count,
        "packs": len([name for name in _hdfs(cluster).list(f"{folder}/packed") if name.endswith(".rec")]),
        "nodes": cluster.size,
        "stored_seconds": stored,
        "figures": table.rows(found),
    }


def _way(cluster: Cluster, folder: str, count: int, scratch: Path) -> Found:
    """All figures of one way, once."""
    found: dict[str, Any] = json.loads(with_jvm(cluster, "bench.reading.where", folder))
    pictures = found.pop("pictures")
    if len(pictures) != count:
        raise BenchError(f"{len(pictures)} of {count} pictures are in {folder}: delete the folder, and try again")
    (scratch / "pictures.json").write_text(json.dumps(pictures))
    for processes in PROCESSES:
        found |= read(cluster, scratch / "pictures.json", processes)
    return found


def _store(cluster: Cluster, folder: str, count: int) -> Found:
    """Seconds for storing the pictures in each way; nothing where they are stored already."""
    missing = [way for way in WAYS if not _hdfs(cluster).status(f"{folder}/{way}", strict=False)]
    seconds = {}
    with tempfile.TemporaryDirectory(prefix="bench-", dir=cluster.home) as scratch:
        directory = _pictures(Path(scratch), count) if missing else Path(scratch)
        for way in missing:
            click.echo(f"storing {count} pictures: {way}", err=True)
            begun = time.monotonic()
            if way == "packed":
                pack(directory, f"{folder}/{way}", cluster.namenode_http, cluster.user)
            else:
                with_jvm(cluster, "bench.reading.store", str(directory), f"{folder}/_{way}")
                _hdfs(cluster).rename(f"{folder}/_{way}", f"{folder}/{way}")
            seconds[way] = time.monotonic() - begun
    return seconds


def _pictures(scratch: Path, count: int) -> Path:
    """A folder with so many files, of which every 400th has the same content."""
    made, many = scratch / "made", scratch / "many"
    make(made, min(count, DIFFERENT))
    many.mkdir()
    originals = sorted(made.glob("*.jpg"))
    for number in range(count):
        (many / f"{number:06}.jpg").hardlink_to(originals[number % len(originals)])
    return many


def _hdfs(cluster: Cluster) -> InsecureClient:
    return InsecureClient(cluster.namenode_http, user=cluster.user)


def _versions(cluster: Cluster) -> dict[str, str]:
    program = "import importlib.metadata as m; print(m.version('hdfs-native'))"
    reader = output([str(WORKER), "-c", program], "the worker environment").strip()
    return machine.ours() | machine.hadoop(cluster.jars) | {"hdfs-native": reader}


if __name__ == "__main__":
    main()
