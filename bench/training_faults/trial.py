"""One trial: a training run, faults while it runs, and what it must have found."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from hdfs import HdfsError

from bench.info.errors import BenchError
from bench.info.processes import ROOT
from bench.stage import until
from bench.training.progress import Row, advances, count_wrong_samples, longest_gap, read_pieces, read_rows
from bench.training_faults.faults import FAULTS
from bench.training_faults.place import PROGRAM, Place
from bench.training_faults.shape import ORDER, STEPS, settings
from hadoop.errors import HadoopError
from jobs.application.package import WORKER_PYTHON
from jobs.worker.threads import ONE_THREAD

OUTPUT = "/bench/training-faults"
MEMBERS, ATTEMPTS, MEMORY_MB = "2:4", 4, 512
BEGIN_SECONDS, END_SECONDS, QUIET_SECONDS = 240.0, 300.0, 60.0
FIRST_STEPS = 10
BETWEEN_SECONDS = (1.0, 6.0)
EXACT = 1e-10
ENDED = ("FINISHED", "FAILED", "KILLED")
FAILURES = (BenchError, HadoopError, HdfsError, LookupError, OSError, psutil.Error, subprocess.SubprocessError)


@dataclass
class Outcome:
    """What was done and what became of it; `wrong` is empty when everything holds.

    missed         faults for which there was nothing to hit
    pause_seconds  the longest time without a step from each fault until the next one, by kind
    difference     of any parameter, at most, from what one process finds alone; None where nothing was found
    wrong_samples  missed, or used twice, of all steps
    """

    number: int
    faults: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    pause_seconds: list[tuple[str, float]] = field(default_factory=list)
    difference: float | None = None
    wrong_samples: int = 0
    generations: int = 0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)


def train_alone(out: Path) -> list[float]:
    """What one process finds that nobody leads."""
    settings(out).write()
    (out / "go").touch()
    argv = [WORKER_PYTHON, PROGRAM, out / "settings.json", ROOT]
    environment = {**ONE_THREAD, "PYTHONPATH": str(ROOT)}
    subprocess.run(argv, env=environment, check=True, capture_output=True, timeout=BEGIN_SECONDS)
    (found,) = _results(out)
    return found


def run(
    place: Place, out: Path, number: int, kinds: Sequence[str], chance: random.Random, alone: list[float]
) -> Outcome:
    """Train into a new folder, do the faults one after another at random moments, mend, and look."""
    outcome, begun = Outcome(number), time.monotonic()
    try:
        settings(out).write()
        job_id = _submit(place, out, number)
        try:
            _train(place, out, job_id, kinds, chance, outcome)
        except FAILURES as error:
            outcome.wrong.append(f"{type(error).__name__}: {error}")
            place.mend()
            with suppress(BenchError):  # it may have ended meanwhile
                place.stage.nodewise("train", "kill", job_id)
        _look(place, out, job_id, number, alone, outcome)
        _look_at_rest(place, outcome)
        if outcome.wrong:
            _keep_logs(place, job_id, out)
    except FAILURES as error:
        outcome.wrong.append(f"{type(error).__name__}: {error}")
    outcome.seconds = time.monotonic() - begun
    return outcome


def _submit(place: Place, out: Path, number: int) -> str:
    output = f"{OUTPUT}/{number}"
    place.stage.hdfs().delete(output, recursive=True)
    words = ["--members", MEMBERS, "--attempts", str(ATTEMPTS), "--memory", str(MEMORY_MB)]
    words += ["--output", f"hdfs://{output}", "--file", str(PROGRAM), "--json"]
    program = ["python", PROGRAM.name, str(out / "settings.json"), str(ROOT)]
    said = place.stage.nodewise("train", "submit", *words, "--", *program)
    return str(json.loads(said)["job_id"])


def _train(place: Place, out: Path, job_id: str, kinds: Sequence[str], chance: random.Random, outcome: Outcome) -> None:
    """From its first steps to its end."""

    def begun() -> bool:
        if said := _end(place, job_id):
            raise BenchError(f"the run ended before any fault: {said}")
        return max((row.steps for row in read_rows(out)), default=0) >= FIRST_STEPS

    until(begun, BEGIN_SECONDS, "the run makes its first steps")
    hits: list[tuple[str, float]] = []
    for kind in kinds:
        time.sleep(chance.uniform(*BETWEEN_SECONDS))
        at = time.monotonic()
        if not _end(place, job_id) and FAULTS[kind](place, chance):
            outcome.faults.append(kind)
            hits.append((kind, at))
        else:
            outcome.missed.append(kind)
    place.mend()
    _await_step(place, out, job_id)
    (out / "go").touch()
    until(lambda: _end(place, job_id), END_SECONDS, "the run ends")
    outcome.pause_seconds = find_pauses(hits, read_rows(out))


def find_pauses(hits: Sequence[tuple[str, float]], rows: Sequence[Row]) -> list[tuple[str, float]]:
    """The longest time without a step from each fault, a kind and its second, until the next one or the last step."""
    if not hits:
        return []
    ends = [*(at for _, at in hits[1:]), advances(rows)[-1].at]
    return [(kind, longest_gap(rows, at, end)) for (kind, at), end in zip(hits, ends, strict=True) if end > at]


def _await_step(place: Place, out: Path, job_id: str) -> None:
    """Until a step is done that was not done yet."""
    had = advances(read_rows(out))[-1].steps
    until(lambda: advances(read_rows(out))[-1].steps > had or _end(place, job_id), END_SECONDS, "the run makes a step")


def _end(place: Place, job_id: str) -> dict[str, Any] | None:
    """What YARN tells of a run that has ended."""
    told = place.resourcemanager().application(job_id)
    return told if told["state"] in ENDED else None


def _look(place: Place, out: Path, job_id: str, number: int, alone: list[float], outcome: Outcome) -> None:
    """Its end, its report, its samples and its parameters."""
    told = place.resourcemanager().application(job_id)
    if told.get("finalStatus") != "SUCCEEDED":
        outcome.wrong.append(f"{job_id} is {told['state']}, {told.get('finalStatus')}: {told.get('diagnostics')}")
        return
    with place.stage.hdfs().read(f"{OUTPUT}/{number}/report.json") as stream:
        report = json.load(stream)
    outcome.generations = len(report["generations"])
    for name in ("steps", "checkpoint"):
        if report[name] != STEPS:
            outcome.wrong.append(f"{name} in the report are {report[name]}, not {STEPS}")
    pieces, rows = read_pieces(out), read_rows(out)
    outcome.wrong_samples = count_wrong_samples(pieces, {row.pid: row.steps for row in rows}, ORDER, STEPS)
    if outcome.wrong_samples:
        outcome.wrong.append(f"{outcome.wrong_samples} samples were missed or used twice")
    found = _results(out)
    if not found:
        outcome.wrong.append("no member has come to the end")
        return
    outcome.difference = max(abs(one - other) for each in found for one, other in zip(each, alone, strict=True))
    if outcome.difference > EXACT:
        outcome.wrong.append(f"a parameter differs by {outcome.difference:.1e} from that of one process alone")


def _look_at_rest(place: Place, outcome: Outcome) -> None:
    with suppress(BenchError):
        until(lambda: not place.left(), QUIET_SECONDS, "nothing is left running")
    outcome.wrong += [f"left running: {one}" for one in place.left()]


def _results(out: Path) -> list[list[float]]:
    return [json.loads(file.read_text()) for file in sorted(out.glob("result-*.json"))]


def _keep_logs(place: Place, job_id: str, out: Path) -> None:
    """What its containers have printed, for whoever looks for the cause."""
    for node in place.nodes:
        logs = place.stage.cluster.node_dir(node) / "containers" / job_id
        if logs.exists():
            shutil.copytree(logs, out / "logs" / node, dirs_exist_ok=True)
