"""A Hadoop as its distribution lays it out, of the jars that nodewise is tested with."""

from __future__ import annotations

from pathlib import Path

from tests.recipes.pages import ROOT

JARS = ROOT / "hadoop" / "target" / "lib"
_PLACES = {
    "hadoop-hdfs": "hdfs",
    "hadoop-yarn-server-timelineservice": "yarn/timelineservice",
    "hadoop-yarn": "yarn",
    "hadoop-mapreduce": "mapreduce",
    "hadoop": "common",
}
"""Where Hadoop's own jars are below share/hadoop, by what their names begin with; the first that fits is meant."""


def lay_out(folder: Path) -> Path:
    """Links in the places of a distribution; what several parts need is there several times."""
    shared = folder / "share" / "hadoop"
    for jar in sorted(JARS.glob("*.jar")):
        begin = next((begin for begin in _PLACES if jar.name.startswith(f"{begin}-")), None)
        for place in ("common/lib", "hdfs/lib") if begin is None else (_PLACES[begin],):
            (shared / place).mkdir(parents=True, exist_ok=True)
            (shared / place / jar.name).symlink_to(jar)
    return folder
