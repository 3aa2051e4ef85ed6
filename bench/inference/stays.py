"""What is kept while jobs come: a pool, a session of Spark, or nothing; each gives the course of its jobs by way."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.inference import ways
from bench.inference.course import Course, follow_pieces, follow_report
from bench.inference.figures import CEILING, COLD, PARTITIONS, POOL, SPARK_COLD, name_kept
from bench.inference.kept_spark import KeptSpark, keep_spark
from bench.inference.ways import FOLDER, Work
from bench.info.errors import BenchError
from bench.spark import EXECUTOR_MB, allocate_dynamically, keep_engines, settings
from bench.stage import Stage, until
from hadoop.local.site import NODE_MEMORY_MB
from hadoop.rest.pages import Pages
from jobs.kinds.pool.wishes import READY

NAME = "bench"
UP_SECONDS, JOB_SECONDS, REST_SECONDS = 400.0, 1200.0, 120.0
WHOLE = "whole"
PATIENT = {"spark.scheduler.maxRegisteredResourcesWaitingTime": f"{UP_SECONDS:.0f}s"}
"""A session that is kept waits for all of its executors, before the first job and not in it."""
AT_ONCE = {"spark.scheduler.minRegisteredResourcesRatio": "0.0"}
"""One that does a single job begins with the first executor; the others take partitions as they come."""


@dataclass(frozen=True)
class Size:
    """What is to be done: `images` are what PARTITIONS calls it.

    Jobs of `warm` images make warm what is kept, before so many `jobs` are measured.
    """

    work: Work
    images: int
    warm: int
    jobs: int

    @property
    def warm_folder(self) -> str:
        """Where in HDFS the images are that are not measured."""
        return f"/bench/warm-{self.warm}"

    @property
    def slices(self) -> tuple[int, ...]:
        """The numbers of partitions that Spark tries."""
        return PARTITIONS[self.images]


Told = dict[str, dict[str, float]]
"""By way and phase."""
Take = Callable[[Stage, Size], Told]


def take_ceiling(made: Stage, size: Size) -> Told:
    """Decode and infer, in a process for each core, without a cluster."""
    found = ways.plain(made, size.work, "memory", len(size.work.cpus))
    return {CEILING: {WHOLE: found["seconds"]}}


def take_pool(made: Stage, size: Size) -> Told:
    """Jobs of a pool whose workers have done one before."""
    with keep_pool(made, size):
        do_in_pool(made, size.warm_folder, size.warm)
        courses = [do_in_pool(made, FOLDER, size.work.pictures)[0] for _ in range(size.jobs)]
    return {POOL: middle(courses)}


def take_spark(made: Stage, size: Size, dynamic: bool) -> Told:
    """Jobs of a session whose executors have loaded the engine, once for each number of partitions, in turns.

    They follow one another at once: Spark ends a Python that has nothing to do for a minute, and its engine with it.
    """
    more = keep_engines() | PATIENT | (allocate_dynamically(made.cluster.size) if dynamic else {})
    with open_spark(made, size, more) as session:
        warm_up(made, size, session)
        turns = [[do_in_spark(made, size, session, slices) for slices in size.slices] for _ in range(size.jobs)]
    return {name_kept(slices, dynamic): middle([turn[at] for turn in turns]) for at, slices in enumerate(size.slices)}


def take_cold(made: Stage, size: Size) -> Told:
    """One job with an application and workers of its own."""
    return {COLD: middle([do_job(made, FOLDER, size.work.pictures, *ways.words_of_network(size.work))[0]])}


def take_cold_spark(made: Stage, size: Size) -> Told:
    """One job with a session of its own, from the start of its driver on."""
    with open_spark(made, size, AT_ONCE) as session:
        course = do_in_spark(made, size, session, size.slices[-1], session.begun)
    return {SPARK_COLD: middle([course])}


STAYS: Mapping[str, Take] = {
    CEILING: take_ceiling,
    POOL: take_pool,
    "spark_kept": partial(take_spark, dynamic=False),
    "spark_dynamic": partial(take_spark, dynamic=True),
}
"""What takes turns where everything is kept."""
STARTS: Mapping[str, Take] = {COLD: take_cold, SPARK_COLD: take_cold_spark}
"""What takes turns where each job starts what it needs."""


def middle(courses: list[Course]) -> dict[str, float]:
    """The course in the middle by its whole time, so that its phases fit together."""
    ordered = sorted(courses, key=lambda one: one.whole)
    return vars(ordered[len(ordered) // 2])


def learn_speeds(made: Stage, size: Size) -> list[float]:
    """Images a second of each node, in the order of the nodes, in the second job of a pool; jobs are judged by them."""
    with keep_pool(made, size):
        do_in_pool(made, size.warm_folder, size.warm)
        _, report = do_in_pool(made, size.warm_folder, size.warm)
    speeds = ways.speeds_of(report)
    least = min(speed for speed in speeds if speed)
    return [speed or least for speed in speeds]


@contextmanager
def keep_pool(made: Stage, size: Size) -> Iterator[None]:
    """A pool until the end of the block; its workers are ready."""
    words = [*ways.words_of_network(size.work), "--idle", "0", "--wait", "--json"]
    made.nodewise("pool", "up", NAME, *words, timeout=UP_SECONDS)
    try:  # by now it may have waited in vain for a slow node
        until(lambda: count_ready(made) == made.cluster.size, UP_SECONDS, "each node has a worker that is ready")
        yield
    finally:
        made.nodewise("pool", "down", NAME, "--now")
        come_to_rest(made)


def count_ready(made: Stage) -> int:
    """The workers of the pool that have their network loaded."""
    nodes = json.loads(made.nodewise("pool", "show", NAME, "--json"))["nodes"]
    return sum(node["said"] == READY for node in nodes)


def do_in_pool(made: Stage, folder: str, pictures: int) -> tuple[Course, dict[str, Any]]:
    """One job of the pool, from the beginning of its command on."""
    return do_job(made, folder, pictures, "--pool", NAME)


def do_job(made: Stage, folder: str, pictures: int, *words: str) -> tuple[Course, dict[str, Any]]:
    """One job, from the beginning of its command to its end, and its report; BenchError when a node had no part."""
    asked_at = time.time()
    report, whole = ways.submit(made, folder, name_output(), pictures, *words, timeout=JOB_SECONDS)
    if len(report["nodes"]) != made.cluster.size:
        raise BenchError(f"the job had {len(report['nodes'])} of {made.cluster.size} nodes")
    return follow_report(report, asked_at, whole, made.cluster.nodes), report


@contextmanager
def open_spark(made: Stage, size: Size, more: Mapping[str, str]) -> Iterator[KeptSpark]:
    """A session until the end of the block: an executor on each node, as a second one finds no room there."""
    network = {"engine": size.work.engine, "batch": size.work.batch}
    spread = {"spark.executor.memoryOverhead": f"{NODE_MEMORY_MB // 2 + 256 - EXECUTOR_MB}m"}
    spark = settings(made.cluster, made.cluster.size) | spread | dict(more)
    weights = str(size.work.weights) if size.work.weights else None
    folders = {
        folder: [f"{folder}/{name}" for name in sorted(made.hdfs().list(folder))]
        for folder in (size.warm_folder, FOLDER)
    }
    with keep_spark(
        made.cluster, {**network, "weights": weights, "folders": folders, "spark": spark}, JOB_SECONDS
    ) as session:
        yield session
    come_to_rest(made)


def warm_up(made: Stage, size: Size, session: KeptSpark) -> None:
    """Have every executor load the engine; BenchError when a node has none, as Spark would then not be at its best."""
    slices = min(size.slices[-1], size.warm)  # none of them is empty
    told = session.ask(size.warm_folder, slices, name_output())
    if missing := set(made.cluster.nodes) - {piece["node"] for piece in told["pieces"]}:
        raise BenchError(f"Spark has no executor on {', '.join(sorted(missing))}")


def do_in_spark(made: Stage, size: Size, session: KeptSpark, slices: int, asked_at: float | None = None) -> Course:
    """One job, from its line on, or since `asked_at`; BenchError when a picture has no row, or two."""
    begun = time.time() if asked_at is None else asked_at
    told = session.ask(FOLDER, slices, name_output())
    if not told["images"] == told["rows"] == size.work.pictures:
        raise BenchError(f"Spark told {told['rows']} rows of {told['images']} of {size.work.pictures} pictures")
    return follow_pieces(told["pieces"], begun, told["committed"], made.cluster.nodes)


def name_output() -> str:
    """A path in HDFS that nothing has yet."""
    return f"/bench/out/{time.time_ns()}"


def come_to_rest(made: Stage) -> None:
    """Wait until nothing runs on the cluster: it would take part of the cores of what comes next."""
    manager = Pages("ResourceManager", made.cluster.rm_http)

    def is_at_rest() -> bool:
        told = manager.read_json("/ws/v1/cluster/metrics", "the cluster")["clusterMetrics"]
        left = sum(told[name] for name in ("containersAllocated", "appsRunning", "appsPending"))
        return not left and not made.working()

    until(is_at_rest, REST_SECONDS, "nothing runs on the cluster")
