"""How long YARN takes to end a container that it wants back for another queue."""

from __future__ import annotations

from pathlib import Path

from hadoop.errors import HadoopError
from hadoop.rest import site_files

NAME = "yarn.resourcemanager.monitor.capacity.preemption.max_wait_before_kill"
USUAL_MS = 15_000
"""YARN's own, where the site file has none."""
SPARE_SECONDS = 5.0


def longest_seconds(conf_dir: Path) -> float:
    """YARN's patience twice, and some more: so long after it said so, the ResourceManager has forgotten that it did."""
    try:
        patience_ms = int(site_files.value(conf_dir / "yarn-site.xml", NAME))
    except (HadoopError, ValueError):
        patience_ms = USUAL_MS
    return 2 * patience_ms / 1000 + SPARE_SECONDS
