"""How long a running job has no new row when the active NameNode or ResourceManager is killed."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from subprocess import Popen
from typing import Any

from bench.info.errors import BenchError
from bench.masters import find_active
from bench.secure.costs import JOB_SECONDS, check_report
from bench.secure.figures import MASTERS, key_of
from bench.secure.pairs import longest_gap
from bench.secure.scene import Found, Place
from bench.stage import START_SECONDS, Stage, until, words_of_job
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


def measure_masters(place: Place, rounds: int) -> Found:
    """A job for each fault in each round, and one without a fault, in an order that is drawn."""
    found: Found = {}
    pictures = place.size.long_pictures
    with place.highly_available(pictures) as made:
        faults = list(FAULTS)
        for number in range(1, (place.rounds or rounds) + 1):
            place.chance.shuffle(faults)
            for fault in faults:
                pause = hit_job(made, fault, pictures, place.chance)
                place.say(f"round {number}, {fault}: no new row for {pause:.2f} s")
                found.setdefault(key_of(MASTERS, fault, "pause"), []).append(pause)
    return found


def hit_job(made: Stage, fault: str, pictures: int, chance: random.Random) -> float:
    """Seconds of the longest time without a new row from the fault on; BenchError when the job is not whole.

    All masters are there again afterwards.
    """
    words = words_of_job(f"/bench/out/{time.time_ns()}-{next(_OUTPUTS)}", "--attempts", "4", "--wait", "--json")
    client = made.begin("job", "submit", *words)
    try:
        progress = Progress(until(lambda: _find_status(made.cluster, client), START_SECONDS, "the job works"))
        begin = pictures * chance.uniform(*SHARES)
        progress.watch(client, lambda: progress.done >= begin)
        moment = time.monotonic()
        if fault != NONE:
            kill_active(made.cluster, fault)
        progress.watch(client, lambda: progress.done >= pictures)
        said, complaint = client.communicate(timeout=JOB_SECONDS)
    finally:
        client.kill()
    if client.returncode:
        raise BenchError(f"the job failed: {complaint.strip()[-1500:]}")
    check_report(json.loads(said), pictures)
    lifecycle.up(made.cluster.home, ready_seconds=START_SECONDS)
    return longest_gap(progress.moments, moment)


class Progress:
    """When a job had new rows; `done` counts all of them. Its master is asked at an address (scheme://host:port)."""

    def __init__(self, master: str) -> None:
        self.done = 0
        self.moments: list[float] = []
        self._pages = Pages("application master", master, LIMITS, kept=1)

    def watch(self, client: Popen[str], is_over: Callable[[], bool]) -> None:
        """Look again and again until it is over, or until the job has ended."""
        while not is_over() and client.poll() is None:
            with suppress(HadoopError):
                done = int(self._pages.read_json("/status", "the job")["done"])
                if done > self.done:
                    self.done = done
                    self.moments.append(time.monotonic())
            time.sleep(LOOK_SECONDS)


def kill_active(cluster: Cluster, kind: str) -> None:
    """Kill the NameNode or the ResourceManager that is active."""
    daemon = find_active(cluster, kind)
    if daemon is None:
        raise BenchError(f"no {kind} is active")
    daemons.find_running(cluster)[daemon].kill()


def _find_status(cluster: Cluster, client: Popen[str]) -> str | None:
    """Where the master of the job that runs is asked; BenchError when the job has ended."""
    if client.poll() is not None:
        raise BenchError(f"the job ended before it worked: {client.communicate()[1].strip()[-1500:]}")
    for manager in cluster.managers_http:
        with suppress(HadoopError):
            told: Any = asking.read_json(cluster.realm, f"{manager}/ws/v1/cluster/apps?states=RUNNING")
            for one in (told.get("apps") or {}).get("app", []):
                if one.get("amRPCAddress"):
                    return f"http://{one['amRPCAddress']}"
    return None


MASTERS_HIT = partial(measure_masters, rounds=3)
