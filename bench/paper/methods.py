"""The ways to divide the same pictures among the same nodes; each gives what it did as a flat record."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from bench.info.errors import BenchError
from bench.lab import MASTER, NAMENODE_PORT, USER, WORKERS
from bench.paper import figures
from bench.paper.stage import (
    CODE,
    CONF,
    CONTAINER_MB,
    FOLDER,
    FROM_HDFS,
    OUTPUT,
    PICTURES,
    SINGLE,
    SLICE,
    WORKER_PYTHON,
    Stage,
)
from bench.spark import allocate_dynamically, keep_engines
from bench.stage import until
from hadoop.errors import HadoopError
from hadoop.rest.pages import Pages

SPARK_JARS = f"{FOLDER}/spark-jars.zip"
REST_SECONDS = 30
"""What perf_cpu needs to forget what was done just before: it looks every 15 s at what was measured every 5 s."""
MANY, MORE = 32, 128
"""Partitions for Spark that even uneven nodes out, as one who knows about them would choose."""
IMAGES_TO_WARM = 320
"""So many are classified before Spark is measured at its best."""
START_SECONDS, JOB_SECONDS = 300.0, 900.0

Found = dict[str, Any]


@dataclass(frozen=True)
class Work:
    """What all methods do; `speeds` are what the nodes have been seen to do in a job, in images/s.

    `folder` is where the pictures are for a job of nodewise.
    """

    pictures: int
    engine: str
    batch: int
    seed: int
    speeds: Mapping[str, float]
    folder: str = PICTURES

    @property
    def expected_seconds(self) -> float:
        """How long a perfect division takes at these speeds."""
        return self.pictures / sum(self.speeds.values())


def job(stage: Stage, work: Work, capability: str, policy: str, *more: str) -> Found:
    """A job of nodewise."""
    return figures.from_report(_check(work, json.loads(stage.nodewise(*_words(work, capability, policy, *more)))))


def job_after_rest(stage: Stage, work: Work, capability: str, policy: str, *more: str) -> Found:
    """The same after a rest, in which only the background load is to be seen."""
    time.sleep(REST_SECONDS)
    return job(stage, work, capability, policy, *more)


def job_with_kill(stage: Stage, work: Work, number: int, cpus: float, loads: Mapping[str, int]) -> Found:
    """A job of nodewise that loses a worker at half time: one that does not run its application master.

    Afterwards the worker is started again with its load, and waited for.
    """
    words = _words(work, "perf_history", "maxflow")
    dead = ""
    with ThreadPoolExecutor(1) as pool:
        try:
            ended = pool.submit(stage.nodewise, *words)
            dead, at = _kill(stage, work, number, ended)
            report = _check(work, json.loads(ended.result()))
        finally:
            if dead:
                stage.start(dead, cpus)
                stage.load(dead, loads[dead])
    if at["images"] >= work.pictures:
        raise BenchError("the job had ended before a worker was killed: give it more pictures")
    rows = json.loads(stage.nodewise("job", "result", words[words.index("--output") + 1], "--json"))
    found = figures.with_death(figures.from_report(report), dead)
    return found | {"killed_at": at, "rows": len(rows), "paths": len({row["path"] for row in rows})}


def spark(stage: Stage, work: Work, *slices: int) -> Found:
    """The same pictures in a mapPartitions of Spark on YARN, in a session of its own; the soonest of these slices."""
    return _in_spark(stage, work, slices, {}, 0)


def spark_at_its_best(stage: Stage, work: Work, dynamic: bool) -> Found:
    """The same with many partitions, on executors that have loaded the engine before for some of the pictures."""
    settings = keep_engines() | (allocate_dynamically(len(WORKERS)) if dynamic else {})
    return _in_spark(stage, work, (MANY, MORE), settings, IMAGES_TO_WARM)


def _in_spark(stage: Stage, work: Work, slices: Sequence[int], more: Mapping[str, str], warm: int) -> Found:
    control = stage.control
    archive = f"hdfs://{SPARK_JARS}"
    settings = control.spark_settings(archive, CONF, len(WORKERS), CONTAINER_MB) | dict(more)
    file, code = control.scratch / "settings.json", control.scratch / "code.zip"
    paths = list_paths(stage, PICTURES)
    chosen = {"engine": work.engine, "weights": None, "batch": work.batch, "code": str(code), "slices": slices}
    file.write_text(json.dumps({**chosen, "warm": warm, "paths": paths, "spark": settings}))
    said = control.spark("bench.inference.spark_job", str(file), python=WORKER_PYTHON)
    best = min(json.loads(said.strip().splitlines()[-1])["rounds"], key=lambda one: float(one["seconds"]))
    names = ("node", "started", "ended", "images")
    pieces = [dict(zip(names, piece, strict=True)) for piece in best["pieces"]]
    return _whole(work, figures.from_pieces(pieces, work.speeds) | {"images": best["images"], "slices": best["slices"]})


def shell(stage: Stage, work: Work) -> Found:
    """Hadoop's distributed shell: a container for each worker wherever YARN puts it, each with an equal part.

    In each runs the plain loop. Nothing in it knows of nodes or of where pictures lie.
    """
    parts = f"{FOLDER}/parts"
    stage.control.hdfs("-rm", "-r", "-f", "-skipTrash", parts)
    stage.control.hdfs("-mkdir", "-p", parts)
    words = [*FROM_HDFS, SLICE, CODE, PICTURES, work.engine, str(work.batch), str(len(WORKERS)), "0", parts]
    stage.control.distributed_shell(words, len(WORKERS), CONTAINER_MB)
    texts = [stage.control.hdfs("-cat", path) for path in list_paths(stage, parts)]
    pieces = [json.loads(text.strip().splitlines()[-1]) for text in texts]
    return _whole(work, figures.from_pieces(pieces, work.speeds) | {"pieces": pieces})


def list_paths(stage: Stage, folder: str) -> list[str]:
    """The paths of a folder in HDFS, in order; none where it is not."""
    try:
        found = stage.page(
            MASTER,
            NAMENODE_PORT,
            f"/webhdfs/v1{folder}?op=LISTSTATUS&user.name={USER}",
            60,
        )
    except BenchError:
        return []
    return sorted(f"{folder}/{one['pathSuffix']}" for one in found["FileStatuses"]["FileStatus"])


def _words(work: Work, capability: str, policy: str, *more: str) -> list[str]:
    output = f"{OUTPUT}/{time.time_ns()}"
    words = [
        "job",
        "submit",
        "--input",
        work.folder,
        "--output",
        output,
        "--capability",
        capability,
        "--policy",
        policy,
    ]
    words += ["--engine", work.engine, "--batch", str(work.batch), "--memory", str(CONTAINER_MB)]
    # On a node that can do a third of what it could, an engine loads three times as long.
    return [*words, "--container-wait", "120", "--capability-wait", "90", "--wait", "--json", *more]


def _check(work: Work, report: dict[str, Any]) -> dict[str, Any]:
    if report["images"] != work.pictures or report["errors"]:
        raise BenchError(f"{report['images']} of {work.pictures} pictures, {report['errors']} errors")
    return report


def _whole(work: Work, found: Found) -> Found:
    if found["images"] != work.pictures:
        raise BenchError(f"{found['images']} of {work.pictures} pictures were done")
    return found


def _kill(stage: Stage, work: Work, number: int, ended: Future[str]) -> tuple[str, Found]:
    """Kill a worker at half of the time that is expected from the first lease on; its name, and how far the job was."""
    begun: list[float] = []

    def half() -> Found | None:
        if ended.done():
            raise BenchError(f"the job ended before a worker could be killed: {ended.result()[:500]}")
        status = _status(stage)
        if status and any(node["running"] or node["images"] for node in status["nodes"]):
            begun.append(status["seconds"])
        due = begun and status and status["seconds"] - begun[0] >= work.expected_seconds / 2
        return status if due else None

    status = until(half, START_SECONDS + JOB_SECONDS, "the job is half done")
    order = random.Random(work.seed * 1000 + number).sample(WORKERS, len(WORKERS))  # noqa: S311 - to be repeated
    master = stage.applications()[0]["amHostHttpAddress"].partition(":")[0]
    dead = next(name for name in order if name != master)
    stage.kill(dead)
    return dead, {"seconds": status["seconds"], "since": status["seconds"] - begun[0], "images": status["done"]}


def _status(stage: Stage) -> Found | None:
    """What the application master of the only job says of it, if it says something."""
    running = [one for one in stage.applications() if one["state"] == "RUNNING"]
    host, _, port = running[0].get("amRPCAddress", "").partition(":") if running else ("", "", "")
    if host not in stage.addresses or not port.isdecimal() or port == "0":
        return None
    try:
        master = Pages("application master", f"http://{stage.addresses[host]}:{port}")
        status: Found = master.read_json("/status", "the job")
    except HadoopError:
        return None
    return status


PAPER = ("algorithm1", "--no-steal")
TITLES = {
    "even": "even, Algorithm 1 (the paper's)",
    "cpu": "cpu, Algorithm 1 (the paper's)",
    "history": "history, Algorithm 1 (the paper's)",
    "maxflow": "history, maxflow, stealing",
    "single": "history, maxflow, stealing; one replica",
    "spark_best": "Spark at its best: engines kept, many partitions",
    "spark_best_dynamic": "Spark at its best, dynamic allocation",
    "spark": "Spark on YARN, a partition an executor",
    "spark_many": f"Spark on YARN, {MANY} partitions",
    "hadoop": "Hadoop's own order (distributed shell)",
    "killed": "history, maxflow, stealing; one of four killed",
}
"""The methods by name, as a table calls them."""


def methods(number: int, cpus: float, loads: Mapping[str, int]) -> dict[str, Callable[[Stage, Work], Found]]:
    """What each method does in a round."""
    return {
        "even": lambda stage, work: job(stage, work, "perf_even", *PAPER),
        "cpu": lambda stage, work: job_after_rest(stage, work, "perf_cpu", *PAPER),
        "history": lambda stage, work: job(stage, work, "perf_history", *PAPER),
        "maxflow": lambda stage, work: job(stage, work, "perf_history", "maxflow"),
        "single": lambda stage, work: job(stage, replace(work, folder=SINGLE), "perf_history", "maxflow"),
        "spark_best": lambda stage, work: spark_at_its_best(stage, work, dynamic=False),
        "spark_best_dynamic": lambda stage, work: spark_at_its_best(stage, work, dynamic=True),
        "spark": lambda stage, work: spark(stage, work, len(WORKERS)),
        "spark_many": lambda stage, work: spark(stage, work, MANY),
        "hadoop": shell,
        "killed": lambda stage, work: job_with_kill(stage, work, number, cpus, loads),
    }


def turns(names: Sequence[str], number: int) -> list[str]:
    """The order of a round: each begins with another method.

    >>> turns(["a", "b", "c"], 1)
    ['b', 'c', 'a']
    """
    at = number % len(names)
    return [*names[at:], *names[:at]]
