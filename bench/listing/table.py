"""What was found, as the record that is kept and as the table that is read."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from bench.info.figures import MB, Figure
from bench.listing.ways import Found

MOST_SECONDS_PER_FILE = 15 / 100_000


def figures(count: int) -> tuple[Figure, ...]:
    """Every row of the table for this number of files."""
    return (
        Figure("cold_seconds", "", "all files with blocks and holders, cold", "s", most=MOST_SECONDS_PER_FILE * count),
        Figure("cold_cpu_seconds", "", "the same: CPU of the process, JVM included", "s"),
        Figure("warm_seconds", "", "all files again, warm", "s", most=MOST_SECONDS_PER_FILE * count),
        Figure("namenode_cpu_seconds", "", "CPU of the NameNode for one listing of all, mean of cold and warm", "s"),
        Figure("listing_rss_bytes", "", "the same: most memory of the process, JVM included", *MB),
        Figure("listing_heap_committed_bytes", "", "the same: heap of the JVM", *MB),
        Figure("listing_heap_bytes", "", "the same: of it in use after a collection", *MB),
        Figure("snapshot_first_seconds", "", "snapshot, made and kept on disk, cold", "s"),
        Figure("snapshot_again_seconds", "", "snapshot, second call, nothing changed", "s"),
        Figure("snapshot_again_folders", "", "the same: folders listed again"),
        Figure("snapshot_one_more_seconds", "", "snapshot, one file more", "s"),
        Figure("snapshot_one_more_folders", "", "the same: folders listed again"),
        Figure("snapshot_rss_bytes", "", "snapshot: most memory of the process, JVM included", *MB),
        Figure("iterator_seconds", "", "beside it: Hadoop's iterator from Python, warm, extrapolated", "s"),
        Figure("plain_seconds", "", "beside it: names and sizes alone, nothing done with them, warm", "s"),
    )


def rows(rounds: Sequence[Found], count: int) -> list[dict[str, Any]]:
    """Every figure with the median of its rounds, in base units."""
    found = [one | {"iterator_seconds": _extrapolate(one, count)} for one in rounds]
    return [
        {
            "name": figure.key,
            "text": figure.text,
            "most": figure.most,
            "nodewise": median(one[figure.key] for one in found),
            "rounds": [one[figure.key] for one in found],
            "met": figure.is_met(median(one[figure.key] for one in found)),
        }
        for figure in figures(count)
    ]


def _extrapolate(found: Found, count: int) -> float:
    return found["iterator_sample_seconds"] / found["iterator_sample_files"] * count


def markdown(record: dict[str, Any]) -> str:
    """The table with what it was measured on."""
    head = ["| figure | must reach | found | reached |", "| --- | --- | --- | --- |"]
    lines = [_line(figure, row) for figure, row in zip(figures(record["files"]), record["figures"], strict=True)]
    return "\n".join([f"# Listing of blocks, {record['date']}", "", _machine_line(record), "", *head, *lines, ""])


def _line(figure: Figure, row: dict[str, Any]) -> str:
    asked = "" if figure.most is None else f"<= {figure.text_of(figure.most)}"
    reached = {True: "yes", False: "**no**", None: ""}[row["met"]]
    return f"| {figure.text} | {asked} | {figure.text_of(row['nodewise'])} | {reached} |"


def _machine_line(record: dict[str, Any]) -> str:
    machine = record["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    made = f"made in {record['made_seconds']:.0f} s" if record["made_seconds"] else "made by an earlier run"
    return (
        f"{record['files']:,} files of 1 to 1,000 bytes with at most two replicas, {made}, on a real cluster "
        f"of {record['nodes']} nodes; medians of {len(record['figures'][0]['rounds'])} rounds in turns, each way in a "
        "process of its own. "
        f"Cold is the first listing of a process whose JVM has just started. {machine['cores']} cores "
        f"({machine['cpu']}), {machine['memory_bytes'] / 2**30:.0f} GiB, {machine['system']}, shared with the cluster "
        f"itself; {versions}. The load before was {record['load_before']:.1f}, the host gave "
        f"{record['steal_ratio']:.1%} of the CPU time to others. The iterator was measured on "
        f"{record['sample_files']:,.0f} files."
    )
