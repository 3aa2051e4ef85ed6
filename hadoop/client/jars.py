"""Where Hadoop's jars are, and whether they are all there."""

from __future__ import annotations

from pathlib import Path

from hadoop.errors import HadoopError

JARS = Path(__file__).resolve().parents[1] / "target" / "lib"

_NEEDED_JARS = (
    "hadoop-common-*.jar",
    "hadoop-hdfs-3*-tests.jar",
    "hadoop-yarn-server-nodemanager-*.jar",
    "hadoop-yarn-server-resourcemanager-*.jar",
    "hadoop-yarn-server-timelineservice-*.jar",
)


def check_jars(jars: Path) -> None:
    """Raise HadoopError unless this directory holds Hadoop's jars."""
    for pattern in _NEEDED_JARS:
        if not any(jars.glob(pattern)):
            raise HadoopError(
                f"{jars} has no {pattern}", remedy="run scripts/setup, or name the jars' directory with --jars"
            )
