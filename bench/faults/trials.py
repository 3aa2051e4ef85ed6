"""One trial: a job, faults in the middle of it, and what must hold afterwards."""

from __future__ import annotations

import io
import json
import random
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

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
    acknowledged meanwhile. Of a pool, there are the `jobs` that it did, how many single pictures were `answered`, and
    what those that were asked for again were `refused` with, and how often. It is the last one where the place cannot
    be put right.
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
    jobs: int = 1
    answered: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    is_last: bool = False


class Work(Protocol):
    """What a cluster does while faults hit it, and what must be there in the end."""

    def begin(self) -> tuple[subprocess.Popen[str] | None, str]:
        """Have it done: who follows it, where that can be killed, and its application; BenchError if none runs."""

    def count_done(self) -> float | None:
        """Pictures that have their rows; None when the application master does not answer."""

    def share(self, done: float, faults: int) -> float:
        """In how many pictures from these on the next of so many faults comes at the latest."""

    def has_ended(self) -> bool:
        """Whether nothing more is done."""

    def finish(self) -> None:
        """Wait for its end; BenchError when that does not come."""

    def leave(self) -> None:
        """End whoever follows it, also after something went wrong."""

    def look(self, outcome: Outcome) -> None:
        """Note what there is, and all that is wrong with it."""


class OneJob:
    """One job with an application of its own: every picture has one row, and nothing else is left of it."""

    def __init__(self, place: Place, output: str, images: int) -> None:
        self._place = place
        self._output = output
        self._images = images
        self._client: subprocess.Popen[str] | None = None
        self._id = ""
        self._state = ""

    def begin(self) -> tuple[subprocess.Popen[str] | None, str]:
        """Submit it, and wait until it runs."""
        self._place.hdfs().delete(self._output, recursive=True)
        self._client = self._place.submit(*words_of_job(self._output, "--attempts", "4"))
        self._id = until(lambda: _running(self._place), BEGIN_SECONDS, "the job runs")
        return self._client, self._id

    def count_done(self) -> float | None:
        """What its application master says."""
        return count_done(self._place, self._id)

    def share(self, done: float, faults: int) -> float:
        """As much of what is left for each fault."""
        return (self._images - done) / faults

    def has_ended(self) -> bool:
        """Whether YARN does nothing more for it."""
        return find_end(self._place, self._id) is not None

    def finish(self) -> None:
        """Wait until YARN says so."""
        self._state = until(lambda: find_end(self._place, self._id), JOB_SECONDS, f"{self._id} ends")

    def leave(self) -> None:
        """End the command that submitted it."""
        if self._client:
            if self._client.poll() is None:
                self._client.terminate()
            with suppress(ValueError):  # what it said was read before
                self._client.communicate()

    def look(self, outcome: Outcome) -> None:
        """One that was killed before its output was in place leaves nothing; its state is FINISHED otherwise."""
        is_there = self._place.hdfs().status(self._output, strict=False) is not None
        outcome.state = self._state
        if self._state != "KILLED" or is_there:
            outcome.state = "FINISHED" if self._state == "KILLED" else self._state
            self._look_at_rows(outcome, is_there)
        look_at_rest(self._place, outcome, self._id)

    def _look_at_rows(self, outcome: Outcome, is_there: bool) -> None:
        """As many rows as pictures, each once; if not, why, as far as the job said it."""
        paths = [row["path"] for row in read_rows(self._place, self._output, "path")] if is_there else []
        outcome.rows = len(paths)
        if not len(paths) == len(set(paths)) == outcome.images:
            why = _application(self._place, self._id).get("diagnostics")
            outcome.wrong.append(f"{len(paths)} rows of {len(set(paths))} pictures; YARN says: {why or 'nothing'}")
        if is_there:
            note_report(self._place, self._output, outcome)


Make = Callable[[Any, str, int], Work]
"""What is done in a place, with its rows below a path, of so many pictures a job."""


def run(
    place: Place, number: int, kinds: Sequence[str], chance: random.Random, images: int, make: Make = OneJob
) -> Outcome:
    """Begin what is to be hit, do the faults at random moments one after another, mend, and look.

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
        work = make(place, f"{OUTPUT}/{number}", images)
        if "job" in kinds:
            _run_once(place, work, ["job"], chance, outcome, writer)
        if outcome.state != "FINISHED" or set(kinds) != {"job"}:
            _run_once(place, work, [kind for kind in kinds if kind != "job"], chance, outcome, writer)
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


def _run_once(
    place: Place, work: Work, kinds: Sequence[str], chance: random.Random, outcome: Outcome, writer: Writer
) -> None:
    """From its beginning to its end."""
    try:
        client, application_id = work.begin()
        trial = Trial(place, client, application_id, chance, writer)
        _hit(trial, work, kinds, outcome)
        outcome.wrong += trial.wrong
        work.finish()
    finally:
        work.leave()
    place.mend()
    work.look(outcome)


def _hit(trial: Trial[Place], work: Work, kinds: Sequence[str], outcome: Outcome) -> None:
    """Do each fault when the work has gone on since the one before, somewhere in its share of what is left to do."""
    for number, kind in enumerate(kinds):
        if trial.place.is_short():  # two holders of the same pictures must not be away at once
            trial.place.mend()
        done = _wait_for(work, 0.0)
        if done is not None:
            share = work.share(done, len(kinds) - number)
            done = _wait_for(work, done + trial.chance.uniform(0.02, 0.9) * share)
        hit = done is not None and ways.do(kind, trial)
        (outcome.faults if hit else outcome.missed).append(kind)


def _wait_for(work: Work, images: float) -> float | None:
    """How far the work is once it came so far; None if it ends before, or an earlier fault holds it up too long."""
    deadline = time.monotonic() + JOB_SECONDS
    while time.monotonic() < deadline and not work.has_ended():
        done = work.count_done()
        if done is not None and done >= images:
            return done
        time.sleep(0.1)
    return None


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


def count_done(place: Place, application_id: str) -> float | None:
    """Pictures that have their rows; None when the application master does not answer."""
    where = next((one.get("amRPCAddress") for one in _applications(place) if one["id"] == application_id), None)
    status = _ask("application master", f"http://{where}", "/status") if where else None
    return float(status["done"]) if status else None


def find_end(place: Place, application_id: str) -> str | None:
    """The state in which YARN does nothing more for an application; None while it does."""
    state = _application(place, application_id).get("state")
    return str(state) if state in ENDED else None


def _application(place: Place, job_id: str) -> dict[str, Any]:
    """What YARN says of a job; nothing when it does not answer."""
    found = _ask("ResourceManager", place.resourcemanager, f"/ws/v1/cluster/apps/{job_id}")
    return found["app"] if found else {}


def read_rows(place: Place, output: str, *columns: str) -> list[dict[str, Any]]:
    """These columns of all rows of an output that is there."""
    hdfs, rows = place.hdfs(), list[dict[str, Any]]()
    for name in hdfs.list(output):
        if name.endswith(".parquet"):
            with hdfs.read(f"{output}/{name}") as stream:
                rows += pq.read_table(io.BytesIO(stream.read()), columns=list(columns)).to_pylist()
    return rows


def note_report(place: Place, output: str, outcome: Outcome) -> None:
    """What the report of an output says went wrong; nothing where there is none."""
    if place.hdfs().status(f"{output}/report.json", strict=False) is None:
        return
    with place.hdfs().read(f"{output}/report.json") as stream:
        report = json.load(stream)
    outcome.attempts = max(outcome.attempts, report["attempts"])
    outcome.failures += [failure["kind"] for failure in report["failures"]]
    outcome.wrong += [f"{report['errors']} pictures could not be classified"] if report["errors"] else []


def look_at_rest(place: Place, outcome: Outcome, job_id: str) -> None:
    """Neither a process of an application nor a file of it is left."""
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
