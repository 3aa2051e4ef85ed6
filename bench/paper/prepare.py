"""Before the first run: pictures and programs in HDFS, nodes that are busy as drawn, and a history of this program."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from typing import Any

from bench.info.errors import BenchError
from bench.lab import SUPERUSER, USER, WORKERS
from bench.paper import levels
from bench.paper.control import slice_script
from bench.paper.methods import SPARK_JARS, Work, job, list_paths
from bench.paper.stage import (
    CODE,
    CONF,
    FOLDER,
    FROM_HDFS,
    PICTURES,
    SINGLE,
    SLICE,
    Stage,
)
from bench.programs import output
from bench.stage import NODEWISE, until
from jobs.code_archive import code_zip
from locality.program_names import speed_name

ENGINE, BATCH = "mxnet_alexnet", 32
"""What perf_history ships for."""
LOOK_SECONDS = 20
KNOWN_SECONDS = 300.0

Say = Callable[[str], None]


def store(stage: Stage, pictures: int, with_spark: bool, say: Say) -> None:
    """Put into HDFS what is not there yet."""
    control, home = stage.control, f"/user/{USER}"
    control.hdfs("-mkdir", "-p", FOLDER, home, user=SUPERUSER)
    control.hdfs("-chown", USER, FOLDER, home, user=SUPERUSER)
    code = control.scratch / "code.zip"
    code.write_bytes(code_zip())
    control.hdfs("-put", "-f", str(code), CODE)
    control.hdfs("-put", "-f", str(slice_script()), SLICE)
    say("the programs are in HDFS")
    if any(len(list_paths(stage, folder)) != pictures for folder in (PICTURES, SINGLE)):
        _store_pictures(stage, pictures)
        say(f"{pictures} pictures are in HDFS")
    if with_spark and SPARK_JARS not in list_paths(stage, FOLDER):
        archive = control.spark_jars()
        control.hdfs("-put", str(archive), SPARK_JARS)
        archive.unlink()
        say("Spark's jars are in HDFS")


def scene(stage: Stage, seed: int, cpus: float, measured: bool, say: Say) -> dict[str, Any]:
    """Make the nodes busy as the seed has it; what was set, and what each could do before and after."""

    def look() -> Mapping[str, float]:
        found = stage.everywhere(lambda name: _speed(stage, name))
        say("images/s by the plain loop: " + ", ".join(f"{name} {speed:.1f}" for name, speed in found.items()))
        return found

    if measured:
        found = levels.calibrate(seed, WORKERS, cpus, stage.load, look)
    else:
        found = levels.guess_loads(seed, WORKERS, cpus, stage.load)
    say("stress-ng: " + ", ".join(f"{name} {percent} %" for name, percent in found.percent.items()))
    return found.to_json()


def teach_speeds(stage: Stage, pictures: int, seed: int) -> dict[str, float]:
    """The speed of each node in a job under the present load, which is all that perf_history knows afterwards."""
    for name in WORKERS:
        try:
            stage.nodewise("data", "rm", speed_name(ENGINE, BATCH), name)
        except BenchError as error:
            if "not" not in str(error):  # there is none yet
                raise
    found = job(stage, Work(pictures, ENGINE, BATCH, seed, {}), "perf_even", "maxflow")
    speeds = {name: node["speed"] for name, node in found["nodes"].items()}
    until(lambda: _knows(stage), KNOWN_SECONDS, "perf_history knows of a job on every worker")
    return speeds


def _knows(stage: Stage) -> bool:
    found = json.loads(stage.nodewise("data", "get", "perf_history.count", "--json"))
    counts = {one["node_name"]: float(one["data_value"] or 0) for one in found}
    return all(counts.get(name) == 1 for name in WORKERS)


def _speed(stage: Stage, name: str) -> float:
    user = ("sudo", "-u", USER, "env", f"HADOOP_CONF_DIR={CONF}", f"HADOOP_USER_NAME={USER}")
    argv = (*user, *FROM_HDFS, SLICE, CODE, PICTURES, ENGINE, str(BATCH), "1", str(LOOK_SECONDS), "-")
    done = json.loads(stage.run(name, *argv, timeout=400).strip().splitlines()[-1])
    return float(done["images"] / (done["ended"] - done["started"]))


def _store_pictures(stage: Stage, pictures: int) -> None:
    folder = stage.control.scratch / "pictures"
    output([*NODEWISE, "images", "make", str(folder), "-n", str(pictures)], "nodewise images make")
    for other in (one for one in folder.iterdir() if one.suffix != ".jpg"):  # the table of what they show
        other.unlink()
    for place, replicas in ((PICTURES, ()), (SINGLE, ("-D", "dfs.replication=1"))):
        stage.control.hdfs("-rm", "-r", "-f", "-skipTrash", place)
        stage.control.hdfs(*replicas, "-put", "-t", "4", str(folder), place)
        if (found := len(list_paths(stage, place))) != pictures:
            raise BenchError(f"{found} of {pictures} pictures are in {place}")
    shutil.rmtree(folder)
