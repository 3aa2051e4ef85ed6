"""`scripts/bench listing`: makes many files on a real cluster, lists them in several ways, keeps the table."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

import click
from hdfs import HdfsError, InsecureClient

from bench.info import machine
from bench.info.errors import BenchError
from bench.kept import RESULTS, tell
from bench.listing import table
from bench.listing.ways import WAYS, Found
from bench.programs import with_jvm
from bench.stage import cluster_of
from hadoop.errors import HadoopError
from hadoop.local import daemons
from hadoop.local.daemons import Daemon
from hadoop.local.lifecycle import Cluster


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--files", "count", type=click.IntRange(1), help="How many.  [default: 100000; 2000 with --quick]")
@click.option(
    "--quick", is_flag=True, help="One node, few files, one round: shows that the bench works, measures nothing."
)
@click.option("--rounds", type=click.IntRange(1), help="Rounds in turns.  [default: 3; 1 with --quick]")
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    help="Home of a cluster to use: started for the run and stopped after it unless it runs already; the files made "
    "stay there, below /bench, for the next run.  [default: a new one, removed afterwards]",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results.  [default: bench/results; with --quick nothing is kept]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def main(
    count: int | None, quick: bool, rounds: int | None, home: Path | None, output: Path | None, as_json: bool
) -> None:
    """Measure how long it takes to know where the blocks of 100,000 files are; making them takes minutes.

    \b
    Examples:
      scripts/bench listing
      scripts/bench listing --quick
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that everything that was started is ended
    try:
        with cluster_of(home, nodes=1 if quick else 4) as cluster:
            record = _measure(cluster, count or (2000 if quick else 100_000), rounds or (1 if quick else 3))
    except (BenchError, HadoopError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    text = table.markdown(record)
    tell("listing", record, text, as_json, output or (None if quick else RESULTS))


def _measure(cluster: Cluster, count: int, rounds: int) -> dict[str, Any]:
    folder = f"/bench/{count}"
    made = None if _files(cluster, folder) == count else _make(cluster, folder, count)
    since, found = machine.Since(), []
    for number in range(1, rounds + 1):
        one: Found = {}
        for way in WAYS:
            click.echo(f"round {number} of {rounds}: {way}", err=True)
            used = _namenode_cpu(cluster)
            one |= json.loads(with_jvm(cluster, "bench.listing.ways", way, folder))
            if way == "bulk":
                one["namenode_cpu_seconds"] = (_namenode_cpu(cluster) - used) / 2  # it lists twice
        if one["files"] != count:
            raise BenchError(
                f"{one['files']:.0f} of {count} files were listed below {folder}: {_how_to_delete(cluster, folder)}"
            )
        found.append(one)
    return since.heading(cluster.home, machine.ours() | machine.hadoop(cluster.jars)) | {
        "nodes": cluster.size,
        "files": count,
        "made_seconds": made,
        "sample_files": found[0]["iterator_sample_files"],
        "figures": table.rows(found, count),
    }


def _namenode_cpu(cluster: Cluster) -> float:
    """CPU seconds of the NameNode so far."""
    times = daemons.find_running(cluster)[Daemon(cluster, "namenode")].cpu_times()
    return float(times.user + times.system)


def _files(cluster: Cluster, folder: str) -> int:
    """How many files lie below a folder now."""
    try:
        return int(InsecureClient(cluster.namenode_http, user=cluster.user).content(folder)["fileCount"])
    except HdfsError:
        return 0


def _how_to_delete(cluster: Cluster, folder: str) -> str:
    query = f"op=DELETE&recursive=true&user.name={cluster.user}"
    delete = f"curl -X DELETE '{cluster.namenode_http}/webhdfs/v1{folder}?{query}'"
    return f"delete it with `nodewise --home {cluster.home} cluster up && {delete}`, and try again"


def _make(cluster: Cluster, folder: str, count: int) -> float:
    click.echo(f"making {count} files", err=True)
    begun = time.monotonic()
    with_jvm(cluster, "bench.listing.files", folder, str(count))
    return time.monotonic() - begun


if __name__ == "__main__":
    main()
