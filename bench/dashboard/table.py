"""What was found, as the record that is kept and as the table that is read."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from bench.dashboard.browser import Found
from bench.info.figures import LINE_HEAD, MB, MS, PERCENT, Figure, line_of

FIGURES = (
    Figure("first_paint_seconds", "", "first paint", *MS, most=1.0),
    Figure("complete_seconds", "", "every node painted", *MS, most=1.0),
    Figure("script_seconds", "", "the same: scripting", *MS),
    Figure("layout_seconds", "", "the same: style and layout", *MS),
    Figure("live_script_cores", "", "while values come in: scripting", *PERCENT),
    Figure("live_cores", "", "the same: all that the page's thread does", *PERCENT),
    Figure("heap_bytes", "", "the same: memory of its scripts", *MB),
)


def rows(rounds: Sequence[Found]) -> list[dict[str, Any]]:
    """Every figure with the median of its rounds, in base units."""
    return [
        {
            "name": figure.key,
            "text": figure.text,
            "most": figure.most,
            "nodewise": median(one[figure.key] for one in rounds),
            "rounds": [one[figure.key] for one in rounds],
            "met": figure.is_met(median(one[figure.key] for one in rounds)),
        }
        for figure in FIGURES
    ]


def markdown(record: dict[str, Any]) -> str:
    """The table with what it was measured on."""
    lines = [
        line_of(figure, row["nodewise"], row["rounds"]) for figure, row in zip(FIGURES, record["figures"], strict=True)
    ]
    return "\n".join([f"# Dashboard, {record['date']}", "", _machine_line(record), "", *LINE_HEAD, *lines, ""])


def _machine_line(record: dict[str, Any]) -> str:
    machine, size = record["machine"], record["size"]
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    return (
        f"The page of the cluster with {size['nodes']:,} nodes that send {size['names']} values each every "
        f"{size['interval']:g} s; medians of {len(record['figures'][0]['rounds'])} rounds, each in a browser that was "
        "just started, without a window and with nothing cached. Times begin with the request of the page; every node "
        f"is painted when each has its cell. Then {size['live_seconds']:g} s of live values. "
        f"{machine['cores']} cores ({machine['cpu']}), {machine['memory_bytes'] / 2**30:.0f} GiB, {machine['system']}, "
        f"shared with the service and the simulated nodes; {versions}. The load before was "
        f"{record['load_before']:.1f}, the host gave {record['steal_ratio']:.1%} of the CPU time to others."
    )
