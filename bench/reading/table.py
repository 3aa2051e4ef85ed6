"""What was found, as the record that is kept and as the table that is read."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from bench.info.figures import MS, Figure

WAYS = ("files", "packed")
PROCESSES = (1, 2)
Found = dict[str, float]
MB_PER_SECOND = ("MB/s", 1e-6)


def key(processes: int, what: str) -> str:
    """The name of a figure of reading."""
    return f"{what}_{processes}"


def _figures() -> tuple[Figure, ...]:
    rows = [
        Figure("known_seconds", "", "before the job: blocks with holders known, JVM warm-up included", "s"),
        Figure("placed_seconds", "", "the same, and where each picture is", "s"),
        Figure("blocks", "", "blocks to divide"),
    ]
    for count in PROCESSES:
        by = f"{count} process{'es' if count > 1 else ''}"
        rows += [
            Figure(key(count, "images_per_second"), "", f"read by {by}", "images/s"),
            Figure(key(count, "bytes_per_second"), "", "the same", *MB_PER_SECOND),
            Figure(key(count, "cpu_seconds_per_image"), "", "the same: CPU of the readers per image", *MS),
        ]
    return tuple(rows)


FIGURES = _figures()


def rows(rounds: Sequence[dict[str, Found]]) -> list[dict[str, Any]]:
    """Every figure with the median of its rounds for each way, and how many times that of files the packed one is."""
    return [_row(figure, {way: [one[way][figure.key] for one in rounds] for way in WAYS}) for figure in FIGURES]


def _row(figure: Figure, rounds: dict[str, list[float]]) -> dict[str, Any]:
    middle = {way: median(found) for way, found in rounds.items()}
    return {
        "name": figure.key,
        "text": figure.text,
        **middle,
        "packed_over_files": middle["packed"] / middle["files"],
        "rounds": rounds,
    }


def markdown(record: dict[str, Any]) -> str:
    """The table with what it was measured on."""
    head = ["| figure | files | packed | packed : files |", "| --- | --- | --- | --- |"]
    lines = [_line(figure, row) for figure, row in zip(FIGURES, record["figures"], strict=True)]
    return "\n".join([f"# Reading of pictures, {record['date']}", "", _machine_line(record), "", *head, *lines, ""])


def _line(figure: Figure, row: dict[str, Any]) -> str:
    files, packed = (figure.text_of(row[way]) if figure.unit else f"{row[way]:,.0f}" for way in WAYS)
    return f"| {figure.text} | {files} | {packed} | {row['packed_over_files']:.2f} |"


def _machine_line(record: dict[str, Any]) -> str:
    machine = record["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return (
        f"The same {record['images']:,} JPEGs of {record['image_bytes'] / 1e3:.0f} kB on average as a file each and in "
        f"{record['packs']} packs of at most 64 MB, two replicas, on a real cluster of {record['nodes']} nodes on this "
        f"machine; medians of {len(record['figures'][0]['rounds']['files'])} rounds in turns, each in processes of its "
        f"own. Read as a worker reads (hdfs-native, from whichever DataNode gives them, chunks of 32, two ahead), not "
        f"decoded; all of it fits into memory, so no disk was waited for. {machine['cores']} cores ({machine['cpu']}), "
        f"{machine['memory_bytes'] / 2**30:.0f} GiB, {machine['system']}, shared with the DataNodes; {versions}. The "
        f"load before was {record['load_before']:.1f}, the host gave {record['steal_ratio']:.1%} of the CPU time to "
        "others."
    )
