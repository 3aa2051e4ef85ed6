"""Builds the load test of the plug-in and runs it in a JVM of its own."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.info.errors import BenchError
from bench.info.processes import ROOT
from hadoop.jre import OPENS, find_java

PLUGIN = ROOT / "yarn-plugin"
PROGRAM = "nodewise.yarn.load.SchedulingLoad"
MAVEN = ("mvn", "-q", "-B", "-Dstyle.color=never", "-f", str(PLUGIN / "pom.xml"))


@dataclass(frozen=True)
class Size:
    """How much is measured; a warm-up is a round that does not count."""

    nodes: int
    warm_ups: int
    rounds: int
    seconds: float


def run(size: Size) -> list[dict[str, Any]]:
    """Every trial of every round, warm-ups left out."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        path = ":".join([str(PLUGIN / "target/test-classes"), str(PLUGIN / "target/classes"), _class_path(place)])
        words = map(str, (place, size.nodes, size.warm_ups, size.rounds, size.seconds))
        java = find_java(os.environ.get("JAVA_HOME"))
        _do([str(java), "-Xmx2g", *OPENS, "-cp", path, PROGRAM, *words], "the load test")
        found = json.loads((place / "found.json").read_text())
    return [trial for trial in found if trial["round"] >= 0]


def _class_path(place: Path) -> str:
    """Of the compiled tests, which Maven knows."""
    file = place / "class-path"
    goals = ["test-compile", "dependency:build-classpath", f"-Dmdep.outputFile={file}", "-Dmdep.includeScope=test"]
    _do([*MAVEN, *goals], "the build of the plug-in")
    return file.read_text().strip()


def _do(argv: Sequence[str], what: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode:
        raise BenchError(f"{what} failed: {(done.stdout + done.stderr).strip()[-3000:]}")
