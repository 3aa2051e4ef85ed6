"""Runs a way on nodes, and reads what each phase took: from what the program has noted, and from NodeManagers' logs."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import count
from pathlib import Path

from bench.environments.scene import CODE, Scene
from bench.environments.ways import Way
from bench.info.errors import BenchError
from bench.programs import TOLD
from bench.stage import until
from hadoop.client.yarn import Launch
from hadoop.local.daemons import Daemon

HERE = Path(__file__).resolve().parent
NODE_SCRIPT, PROBE = HERE / "on_node.sh", HERE / "probe.py"
MEMORY_MB = 1024
SECONDS = 900.0
_CHANGE = re.compile(r"(\S+ \S+) INFO ContainerImpl: Container (\S+) transitioned from \w+ to (\w+)")
_NUMBERS = count(1)

Phases = Mapping[str, float]
"""Seconds by name of a phase; `ready` are those from the first byte to the first line, YARN's own left out."""


@dataclass(frozen=True)
class Running:
    """A program that was asked for."""

    way: Way
    node: str
    folder: Path
    application_id: str
    asked_at: float


def begin(scene: Scene, way: Way, node: str, *modes: str) -> Running:
    """Ask YARN for a program on a node; `modes` are those of probe.py."""
    folder = scene.scratch / "runs" / f"{next(_NUMBERS)}-{node}"
    folder.mkdir(parents=True)
    probe = folder / PROBE.name
    shutil.copyfile(PROBE, probe)
    steps = [word for phase, words in way.steps(scene, node) for word in ("step", phase, str(len(words)), *words)]
    program = way.start(scene, node, [str(probe), scene.content.module, str(folder), *modes])
    launch = Launch(
        argv=["/bin/bash", str(NODE_SCRIPT), str(folder), *steps, *program],
        environment={"PYTHONPATH": "code.zip", "HOME": str(folder)},
        files={},
        memory_mb=MEMORY_MB,
        vcores=1,
        archives=dict(way.archives(scene)),
        shared={"code.zip": CODE, **way.shared(scene)},
    )
    told = scene.submitter.ask("submit", asdict(launch), node)
    return Running(way, node, folder, told["application_id"], told["asked_at"])


def await_ready(running: Running) -> None:
    """Until the program has made its step; BenchError when it does not."""
    until((running.folder / "probe.json").exists, SECONDS, f"a program has begun by {running.way.name}")


def finish(scene: Scene, running: Running) -> Phases:
    """What each phase took, once the program has ended; BenchError when it could not do its work."""
    said, folder = scene.submitter.ask("follow", running.application_id), running.folder
    if not (folder / "probe.json").exists():
        told = (folder / "stderr").read_text() if (folder / "stderr").exists() else said
        raise BenchError(f"no program has begun by {running.way.name} on {running.node}: {told.strip()[-TOLD:]}")
    found = json.loads((folder / "probe.json").read_text())
    first = found.pop("first")
    phases = _read_steps(scene, running, first)
    if running.way.localised:
        phases[running.way.localised] = _localised_seconds(scene, running)
    ready = sum(phases.values())
    phases |= found | {"ready": ready, "yarn": first - running.asked_at - ready}
    again = folder / "again" / "probe.json"
    return phases | ({"import_again": json.loads(again.read_text())["import"]} if again.exists() else {})


def run(scene: Scene, way: Way, nodes: Sequence[str], cold: bool, *modes: str) -> list[Phases]:
    """On these nodes at once; where it shall be cold, they first lose all of it."""
    for node in nodes if cold else ():
        way.forget(scene, node)
    os.sync()  # what earlier runs have written must not be written in this one's time
    started = [begin(scene, way, node, *modes) for node in nodes]
    return [finish(scene, one) for one in started]


def localised_seconds(log: str, container: str) -> float:
    """Until a container had all its files, by the log of its NodeManager; BenchError when that does not tell."""
    at = {match[3]: _seconds(match[1]) for match in _CHANGE.finditer(log) if match[2] == container}
    if not {"LOCALIZING", "SCHEDULED"} <= at.keys():
        raise BenchError(f"the NodeManager's log does not tell when {container} had its files")
    return at["SCHEDULED"] - at["LOCALIZING"]


def _localised_seconds(scene: Scene, running: Running) -> float:
    log = Daemon(scene.cluster, "nodemanager", running.node).log
    return localised_seconds(log.read_text(), (running.folder / "container").read_text().strip())


def _read_steps(scene: Scene, running: Running, first: float) -> dict[str, float]:
    """Seconds of each step, and from the last to the program's first line."""
    before = float((running.folder / "begun").read_text())
    found = {}
    for phase in dict.fromkeys(phase for phase, _ in running.way.steps(scene, running.node)):
        done = float((running.folder / phase).read_text())
        found[phase], before = done - before, done
    return found | {"start": first - before}


def _seconds(told: str) -> float:
    """A log's time."""
    return datetime.strptime(told, "%Y-%m-%d %H:%M:%S,%f").astimezone().timestamp()
