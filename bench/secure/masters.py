"""How long a running job has no new row when the active NameNode or ResourceManager is killed."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import count
from subprocess import Popen
from typing import Any

import psutil

from bench.info.errors import BenchError
from bench.masters import find_active
from bench.secure.costs import JOB_SECONDS, check_report
from bench.secure.figures import MASTERS, key_of
from bench.secure.pairs import longest_gap
from bench.secure.scene import Place
from bench.stage import START_SECONDS, Stage, words_of_job
from hadoop.errors import HadoopError
from hadoop.local import daemons, lifecycle
from hadoop.local.kerberos import asking
from hadoop.local.lifecycle import Cluster
from hadoop.rest.pages import Limits, Pages

NONE = "none"
FAULTS = (NONE, "namenode", "resourcemanager")
SHARES = (0.1, 0.3)
"""How much of a job is done when it is hit: the rest has to take longer than a failover."""
LOOK_SECONDS = 0.05
LIMITS = Limits(connect=3.0, silence=3.0)
_OUTPUTS = count(1)


def measure_masters(place: Place, rounds: int) -> None:
    """A job for each fault in each round, and one without a fault, in an order that is drawn."""
    pictures = place.size.long_pictures
    with place.highly_available(pictures) as made:

        def mend() -> None:
            _start_missing(made)
            made.end_jobs()

        faults = list(FAULTS)
        for number in range(1, (place.rounds or rounds) + 1):
            place.chance.shuffle(faults)
            for fault in faults:
                place.measure(f"round {number}", partial(_measure_pause, made, fault, pictures, place.chance), mend)


def _measure_pause(made: Stage, fault: str, pictures: int, chance: random.Random) -> dict[str, float]:
    """The pause by its key; all masters are there again afterwards."""
    pause = hit_job(made, fault, pictures, chance)
    _start_missing(made)
    return {key_of(MASTERS, fault, "pause"): pause}


def _start_missing(made: Stage) -> None:
    lifecycle.up(made.cluster.home, ready_seconds=START_SECONDS)


def hit_job(made: Stage, fault: str, pictures: int, chance: random.Random) -> float:
    """Seconds of the longest time without a new row from the fault on; BenchError when the job is not whole."""
    words = words_of_job(f"/bench/out/{time.time_ns()}-{next(_OUTPUTS)}", "--attempts", "4", "--wait", "--json")
    client = made.begin("job", "submit", *words)
    progress = Progress(client, partial(_find_status, made.cluster))
    begin = pictures * chance.uniform(*SHARES)
    try:
        with ThreadPoolExecutor(1) as pool:
            progress.watch(lambda: progress.done >= begin)
            # Meanwhile rows come on: the one that is hit has to be the one that is active then.
            victim = pool.submit(_find_victim, made.cluster, fault)
            progress.watch(victim.done)
            moment = time.monotonic()
            if found := victim.result():
                found.kill()
        progress.watch(lambda: progress.done >= pictures)
        said, complaint = client.communicate(timeout=JOB_SECONDS)
    finally:
        client.kill()
    if client.returncode:
        raise BenchError(f"the job failed: {complaint.strip()[-1500:]}")
    check_report(json.loads(said), pictures)
    return longest_gap(progress.end(pictures), moment)


class Progress:
    """When the job that a client follows had new rows; `done` counts all of them, `find` tells its master's address.

    An address is scheme://host:port, None while there is none.
    """

    def __init__(self, client: Popen[str], find: Callable[[], str | None]) -> None:
        self.done = 0
        self._moments: list[float] = []
        self._client, self._find = client, find
        self._pages: Pages | None = None

    def watch(self, is_over: Callable[[], bool]) -> None:
        """Look again and again until it is over, or the job has ended; BenchError when neither comes in time."""
        deadline = time.monotonic() + JOB_SECONDS
        while not is_over() and self._client.poll() is None:
            if time.monotonic() > deadline:
                raise BenchError(f"the job goes on after {JOB_SECONDS:.0f} s, with {self.done} rows")
            self._look()
            time.sleep(LOOK_SECONDS)

    def end(self, pictures: int) -> list[float]:
        """The moments, once the job has a row for each picture: those that were not seen came now at the latest."""
        return [*self._moments, *([time.monotonic()] if self.done < pictures else [])]

    def _look(self) -> None:
        if self._pages is None:
            address = self._find()
            if address is None:
                return
            self._pages = Pages("application master", address, LIMITS, kept=1)
        try:
            done = int(self._pages.read_json("/status", "the job")["done"])
        except HadoopError:
            self._pages = None  # the next attempt has another address
            return
        if done > self.done:
            self.done = done
            self._moments.append(time.monotonic())


def _find_victim(cluster: Cluster, fault: str) -> psutil.Process | None:
    """The NameNode or the ResourceManager that is active, None for no fault; BenchError when none is active."""
    if fault == NONE:
        return None
    daemon = find_active(cluster, fault)
    process = daemons.find_running(cluster).get(daemon) if daemon else None
    if process is None:
        raise BenchError(f"no {fault} is active")
    return process


def _find_status(cluster: Cluster) -> str | None:
    """Where the master of the job that runs is asked, of several that which began last."""
    for manager in cluster.managers_http:
        with suppress(HadoopError):
            told: Any = asking.read_json(cluster.realm, f"{manager}/ws/v1/cluster/apps?states=RUNNING")
            found = [one for one in (told.get("apps") or {}).get("app", []) if one.get("amRPCAddress")]
            if found:
                return f"http://{max(found, key=lambda one: one['startedTime'])['amRPCAddress']}"
    return None


MASTERS_HIT = partial(measure_masters, rounds=3)
