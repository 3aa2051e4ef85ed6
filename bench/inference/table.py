"""What was measured, as the record that is kept and as the table that is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

WAYS = {
    "ceiling": "decode + infer, pictures in memory, one process a core",
    "plain": "plain loop: read, decode, infer in one process",
    "nodewise": "nodewise job, maxflow by history",
    "nodewise_packed": "the same, pictures in packs",
    "spark": "Spark, one partition an executor",
    "spark_warm": "the same once more, engines loaded",
    "spark_many": "Spark, 32 partitions, engines loaded",
}
COLUMNS = {
    "images_per_second": ("images/s", "{:.1f}"),
    "seconds": ("makespan, s", "{:.1f}"),
    "over_bound": ("over bound", "{:.2f}"),
    "bytes_moved": ("bytes moved", "{:,.0f}"),
    "first_result_seconds": ("first result, s", "{:.1f}"),
    "wall_seconds": ("all, s", "{:.1f}"),
}


def ratio(scene: Mapping[str, Sequence[Mapping[str, float]]], over: str, under: str, key: str) -> float:
    """Median over the rounds of one way's figure over the other's in the same round."""
    return median(one[key] / other[key] for one, other in zip(scene[over], scene[under], strict=True))


def markdown(record: Mapping[str, Any]) -> str:
    """One table for even and one for uneven nodes, medians of the rounds, and the ratios that were asked for."""
    machine = record["machine"]
    lines = [
        f"# Inference, {record['date']}",
        "",
        f"{record['pictures']} pictures, {record['engine']}, batch {record['batch']}, on a real cluster; medians of "
        f"{len(record['scenes']['even']['nodewise'])} rounds in turns. {machine['cores']} cores ({machine['cpu']}), "
        f"{machine['memory_bytes'] / 2**30:.0f} GiB, shared with the cluster itself; the load before was "
        f"{record['load_before']:.1f}, the host gave {record['steal_ratio']:.1%} of the CPU time to others. Makespan "
        "runs from the first read on any node to the last result, with what other nodes still take to load the engine "
        "meanwhile; `all` and the first result run from the command.",
    ]
    for name, scene in record["scenes"].items():
        titles = [title for title, _ in COLUMNS.values()]
        lines += ["", f"## {name.capitalize()} nodes", "", f"| way | {' | '.join(titles)} | per-image overhead, ms |"]
        lines += ["| --- " * (len(titles) + 2) + "|"]
        lines += [_line(scene, way) for way in WAYS if way in scene]
        files, packs = (ratio(scene, way, "ceiling", "images_per_second") for way in ("nodewise", "nodewise_packed"))
        lines += ["", f"nodewise reaches {files:.0%} of the ceiling, with packs {packs:.0%};"]
        for other in (way for way in ("spark", "spark_warm", "spark_many") if way in scene):
            lines += [f"{WAYS[other]}: {ratio(scene, other, 'nodewise', 'seconds'):.2f} times its makespan;"]
    return "\n".join([*lines, ""])


def _line(scene: Mapping[str, Sequence[Mapping[str, float]]], way: str) -> str:
    cells = []
    for key, (_, form) in COLUMNS.items():
        values = [one[key] for one in scene[way] if key in one]
        cells.append(form.format(median(values)) if values else "")
    overhead = median(
        1000 / one["images_per_second"] - 1000 / top["images_per_second"]
        for one, top in zip(scene[way], scene["ceiling"], strict=True)
    )
    return f"| {WAYS[way]} | {' | '.join(cells)} | {overhead:.2f} |"
