"""Where Hadoop's jars are, and whether they are all there."""

from __future__ import annotations

from pathlib import Path

from hadoop.errors import HadoopError
from hadoop.installation import Part, hadoop_folder, remedy

JARS = hadoop_folder() / "lib"

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
            mend = f"{remedy(Part.HADOOP)}, or name the jars' directory with --jars"
            raise HadoopError(f"{jars} has no {pattern}", remedy=mend)
