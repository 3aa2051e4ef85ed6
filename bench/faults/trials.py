"""One trial: a job, faults in the middle of it, and what must hold afterwards."""

from __future__ import annotations

import io
import json
import random
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import psutil
import pyarrow.parquet as pq
from hdfs import HdfsError

from bench.faults import kinds as ways
from bench.faults.place import Place, Trial
from bench.faults.writer import Writer
from bench.info.errors import BenchError
from bench.stage import ENDED, until, words_of_job
from hadoop.errors import HadoopError
from hadoop.rest.masters import Addresses
from hadoop.rest.pages import Limits, Pages
from infosvc.wire.errors import InfoError

OUTPUT = "/bench/out"
LIMITS = Limits(connect=3.0, silence=3.0)
BEGIN_SECONDS = 240.0
JOB_SECONDS = 300.0
"""After its last fault, and for each fault."""
QUIET_SECONDS = 120.0
NEW_NODEMANAGER = frozenset({"nodemanager", "node", "machine"})
"""Faults after which YARN may end an application master while it takes its files away; the next submit does that."""
SLIPS = (LookupError, OSError, psutil.Error, subprocess.SubprocessError)
FAILURES = (BenchError, HadoopError, HdfsError, InfoError, ValueError, *SLIPS)
"""What goes wrong when something does not come back, or is not whole; the next job begins all the same."""


@dataclass
class Outcome:
    """What was done to a job and what became of it; `wrong` is empty when everything holds.

    `faults` are those that hit something, `missed` those for which it was too late, `writes` those that the service
    acknowledged meanwhile. It is the last one where the place cannot be put right.
    """

    number: int
    faults: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    seconds: float = 0.0
    state: str = ""
    rows: int = 0
    images: int = 0
    attempts: int = 0
    writes: int = 0
    failures: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    is_last: bool = False


def run(place: Place, number: int, kinds: Sequence[str], chance: random.Random, images: int) -> Outcome:
    """Submit, do the faults at random moments one after another, mend, and look.

    A job that is killed leaves nothing and is done again, or it had put everything in place by then. It is killed
    before the other faults: what they do is only proven by its rows.
    """
    outcome = Outcome(number, images=images)
    started = time.monotonic()
    writer = Writer(place.client)
    try:
        writer.register()
        place.back_up()
        writer.start()
        if "job" in kinds:
            _run_once(place, ["job"], chance, outcome, writer)
        if outcome.state != "FINISHED" or set(kinds) != {"job"}:
            _run_once(place, [kind for kind in kinds if kind != "job"], chance, outcome, writer)
        writer.stop()
        outcome.wrong += writer.find_lost()
    except FAILURES as error:
        outcome.wrong.append(f"{type(error).__name__}: {error}")
        _put_right(place, outcome)
    finally:
        writer.stop()
    outcome.writes = writer.count
    outcome.seconds = time.monotonic() - started
    return outcome


def _put_right(place: Place, outcome: Outcome) -> None:
    """Start what is missing, and end jobs that were left; what cannot be put right is wrong as well."""
    try:
        place.mend()
        for left in _applications(place):
            place.nodewise("job", "kill", str(left["id"]))
    except FAILURES as error:
        outcome.wrong.append(f"nothing can go on: {type(error).__name__}: {error}")
        outcome.is_last = True


def _run_once(place: Place, kinds: Sequence[str], chance: random.Random, outcome: Outcome, writer: Writer) -> None:
    """One job from its beginning to its end; its state is FINISHED when its output is there."""
    output = f"{OUTPUT}/{outcome.number}"
    place.hdfs().delete(output, recursive=True)
    client = _submit(place, output)
    try:
        trial = Trial(place, client, until(lambda: _running(place), BEGIN_SECONDS, "the job runs"), chance, writer)
        _hit(trial, kinds, outcome)
        outcome.wrong += trial.wrong
        outcome.state = until(lambda: _end_of(trial), JOB_SECONDS, f"{trial.job_id} ends")
    finally:
        _end(client)
    place.mend()
    if outcome.state == "KILLED" and not place.hdfs().status(output, strict=False):
        _look_at_rest(place, outcome, trial.job_id)
        return
    outcome.state = "FINISHED" if outcome.state == "KILLED" else outcome.state
    _look(place, output, outcome, trial.job_id)


def _hit(trial: Trial[Place], kinds: Sequence[str], outcome: Outcome) -> None:
    """Do each fault when the job has gone on since the one before, somewhere in its share of what is left to do."""
    for number, kind in enumerate(kinds):
        if trial.place.is_short():  # two holders of the same pictures must not be away at once
            trial.place.mend()
        done = _wait_for(trial, 0.0)
        if done is not None:
            share = (outcome.images - done) / (len(kinds) - number)
            done = _wait_for(trial, done + trial.chance.uniform(0.02, 0.9) * share)
        hit = done is not None and ways.do(kind, trial)
        (outcome.faults if hit else outcome.missed).append(kind)


def _submit(place: Place, output: str) -> subprocess.Popen[str]:
    return place.submit(*words_of_job(output, "--attempts", "4"))


def _end(client: subprocess.Popen[str]) -> None:
    if client.poll() is None:
        client.terminate()
    with suppress(ValueError):  # what it said was read before
        client.communicate()


def _ask(title: str, address: Addresses, path: str) -> Any:
    """JSON, or None when a daemon does not answer: it may have been killed."""
    with suppress(HadoopError):
        return Pages(title, address, LIMITS).read_json(path, "the job")
    return None


def _applications(place: Place) -> list[dict[str, Any]]:
    found = _ask("ResourceManager", place.resourcemanager, "/ws/v1/cluster/apps?states=ACCEPTED,RUNNING")
    return list(((found or {}).get("apps") or {}).get("app", []))


def _running(place: Place) -> str | None:
    return next((str(one["id"]) for one in _applications(place) if one["state"] == "RUNNING"), None)


def _count_done(trial: Trial[Place]) -> float | None:
    """Pictures that have their rows; None when the application master does not answer."""
    where = next((one.get("amRPCAddress") for one in _applications(trial.place) if one["id"] == trial.job_id), None)
    status = _ask("application master", f"http://{where}", "/status") if where else None
    return float(status["done"]) if status else None


def _wait_for(trial: Trial[Place], images: float) -> float | None:
    """How far the job is once it came so far; None if it ends before, or an earlier fault holds it up too long."""
    deadline = time.monotonic() + JOB_SECONDS
    while time.monotonic() < deadline and not _end_of(trial):
        done = _count_done(trial)
        if done is not None and done >= images:
            return done
        time.sleep(0.1)
    return None


def _end_of(trial: Trial[Place]) -> str | None:
    state = _application(trial.place, trial.job_id).get("state")
    return str(state) if state in ENDED else None


def _application(place: Place, job_id: str) -> dict[str, Any]:
    """What YARN says of a job; nothing when it does not answer."""
    found = _ask("ResourceManager", place.resourcemanager, f"/ws/v1/cluster/apps/{job_id}")
    return found["app"] if found else {}


def _look(place: Place, output: str, outcome: Outcome, job_id: str) -> None:
    """As many rows as pictures, each once, and nothing left running; if not, why, as far as the job said it."""
    hdfs, paths = place.hdfs(), []
    names = hdfs.list(output) if hdfs.status(output, strict=False) else []
    for name in names:
        if name.endswith(".parquet"):
            with hdfs.read(f"{output}/{name}") as stream:
                paths += pq.read_table(io.BytesIO(stream.read()), columns=["path"]).column("path").to_pylist()
    outcome.rows = len(paths)
    if not len(paths) == len(set(paths)) == outcome.images:
        why = _application(place, job_id).get("diagnostics")
        outcome.wrong.append(f"{len(paths)} rows of {len(set(paths))} pictures; YARN says: {why or 'nothing'}")
    if "report.json" in names:
        with hdfs.read(f"{output}/report.json") as stream:
            report = json.load(stream)
        outcome.attempts = report["attempts"]
        outcome.failures = [failure["kind"] for failure in report["failures"]]
        outcome.wrong += [f"{report['errors']} pictures could not be classified"] if report["errors"] else []
    _look_at_rest(place, outcome, job_id)


def _look_at_rest(place: Place, outcome: Outcome, job_id: str) -> None:
    with suppress(BenchError):
        until(lambda: not place.find_working(), QUIET_SECONDS, "nothing is left running")
    if left := place.find_working():
        outcome.wrong.append(f"left running: {left}")
    folder = f"/user/{place.user}/.nodewise"
    kept = {"decisions", "images", "records", "tasks"}
    if NEW_NODEMANAGER.intersection(outcome.faults):
        kept.add(job_id)
    with suppress(BenchError):
        until(lambda: kept.issuperset(place.hdfs().list(folder)), QUIET_SECONDS, "nothing is left in HDFS")
    if strange := sorted(set(place.hdfs().list(folder)) - kept):
        outcome.wrong.append(f"left in HDFS: {strange}")
