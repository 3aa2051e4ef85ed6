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

from bench.faults import service_faults
from bench.faults.faults import FAULTS, Trial, datanodes_away, mend
from bench.info.errors import BenchError
from bench.stage import CAPABILITY, Stage, until
from hadoop.errors import HadoopError
from hadoop.rest.pages import Limits, Pages

LIMITS = Limits(connect=3.0, silence=3.0)
JOB_SECONDS = 240.0
QUIET_SECONDS = 40.0
ENDED = ("FINISHED", "FAILED", "KILLED")


@dataclass
class Outcome:
    """What was done to a job and what became of it; `wrong` is empty when everything holds.

    `faults` are those that hit something, `missed` those for which it was too late.
    """

    number: int
    faults: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    seconds: float = 0.0
    state: str = ""
    rows: int = 0
    images: int = 0
    attempts: int = 0
    failures: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def run(stage: Stage, number: int, kinds: Sequence[str], chance: random.Random, images: int) -> Outcome:
    """Submit, do the faults at random moments, mend, and look.

    A job that is killed leaves nothing and is done again, or it had put everything in place by then.
    """
    outcome = Outcome(number, images=images)
    started = time.monotonic()
    output = f"/bench/out/{number}"
    stage.hdfs().delete(output, recursive=True)
    service_faults.back_up(stage)
    client = _submit(stage, output)
    try:
        trial = Trial(stage, client, until(lambda: _running(stage), 120, "the job runs"), chance)
        moments = sorted(chance.uniform(0.02, 0.9) for _ in kinds)
        for kind, moment in zip(kinds, moments, strict=True):
            if datanodes_away(stage):  # two holders of the same pictures must not be away at once
                mend(stage)
            hit = _wait_for(trial, moment * images) and FAULTS[kind](trial)
            (outcome.faults if hit else outcome.missed).append(kind)
        outcome.wrong += trial.wrong
        outcome.state = until(lambda: _end_of(trial), JOB_SECONDS, f"{trial.job_id} ends")
        mend(stage)
        if outcome.state == "KILLED" and not stage.hdfs().status(output, strict=False):
            _look_at_rest(stage, outcome)
            _end(client)
            client = _submit(stage, output)
            client.communicate(timeout=JOB_SECONDS)
            outcome.state = "FINISHED"
        _look(stage, output, outcome)
    except (BenchError, HdfsError, TimeoutError, subprocess.TimeoutExpired) as error:
        outcome.wrong.append(str(error))
        mend(stage)
        for left in _applications(stage):
            stage.nodewise("job", "kill", str(left["id"]))
    finally:
        _end(client)
    outcome.seconds = time.monotonic() - started
    return outcome


def _submit(stage: Stage, output: str) -> Any:
    words = ["--input", "/bench/pictures", "--output", output, "--capability", CAPABILITY, "--policy", "maxflow"]
    words += ["--engine", "onnx", "--batch", "8", "--attempts", "4", "--wait", "--json"]
    return stage.begin("job", "submit", *words)


def _end(client: Any) -> None:
    if client.poll() is None:
        client.terminate()
    with suppress(ValueError):  # what it said was read before
        client.communicate()


def _ask(title: str, address: str, path: str) -> Any:
    """JSON, or None when a daemon does not answer: it may have been killed."""
    with suppress(HadoopError):
        return Pages(title, address, LIMITS).read_json(path, "the job")
    return None


def _applications(stage: Stage) -> list[dict[str, Any]]:
    found = _ask("ResourceManager", stage.cluster.rm_http, "/ws/v1/cluster/apps?states=ACCEPTED,RUNNING")
    return list(((found or {}).get("apps") or {}).get("app", []))


def _running(stage: Stage) -> str | None:
    return next((str(one["id"]) for one in _applications(stage) if one["state"] == "RUNNING"), None)


def _count_done(trial: Trial) -> float | None:
    """Pictures that have their rows; None when the application master does not answer."""
    where = next((one.get("amRPCAddress") for one in _applications(trial.stage) if one["id"] == trial.job_id), None)
    status = _ask("application master", f"http://{where}", "/status") if where else None
    return float(status["done"]) if status else None


def _wait_for(trial: Trial, images: float) -> bool:
    """Whether the job came so far; it may end before, or an earlier fault may hold it up too long."""
    deadline = time.monotonic() + JOB_SECONDS
    while time.monotonic() < deadline and not _end_of(trial):
        done = _count_done(trial)
        if done is not None and done >= images:
            return True
        time.sleep(0.1)
    return False


def _end_of(trial: Trial) -> str | None:
    found = _ask("ResourceManager", trial.stage.cluster.rm_http, f"/ws/v1/cluster/apps/{trial.job_id}")
    state = found["app"]["state"] if found else None
    return str(state) if state in ENDED else None


def _look(stage: Stage, output: str, outcome: Outcome) -> None:
    """As many rows as pictures, each once, and nothing left running."""
    hdfs, paths = stage.hdfs(), []
    names = hdfs.list(output) if hdfs.status(output, strict=False) else []
    for name in names:
        if name.endswith(".parquet"):
            with hdfs.read(f"{output}/{name}") as stream:
                paths += pq.read_table(io.BytesIO(stream.read()), columns=["path"]).column("path").to_pylist()
    outcome.rows = len(paths)
    if not len(paths) == len(set(paths)) == outcome.images:
        outcome.wrong.append(f"{len(paths)} rows of {len(set(paths))} pictures")
    if "report.json" in names:
        with hdfs.read(f"{output}/report.json") as stream:
            report = json.load(stream)
        outcome.attempts = report["attempts"]
        outcome.failures = [failure["kind"] for failure in report["failures"]]
        outcome.wrong += [f"{report['errors']} pictures could not be classified"] if report["errors"] else []
    _look_at_rest(stage, outcome)


def _look_at_rest(stage: Stage, outcome: Outcome) -> None:
    with suppress(BenchError):
        until(lambda: not stage.working(), QUIET_SECONDS, "nothing is left running")
    left = []
    for one in stage.working():
        with suppress(psutil.NoSuchProcess):  # it has ended since it was found
            left.append(" ".join(one.cmdline()))
    if left:
        outcome.wrong.append(f"left running: {left}")
    folder = f"/user/{stage.cluster.user}/.nodewise"
    with suppress(BenchError):
        until(lambda: stage.hdfs().list(folder) == ["decisions", "records"], QUIET_SECONDS, "nothing is left in HDFS")
    if (names := stage.hdfs().list(folder)) != ["decisions", "records"]:
        outcome.wrong.append(f"left in HDFS: {names}")
