"""Builds the load test of the plug-in and runs it in a JVM of its own."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.programs import output
from hadoop.client.jre import OPENS, find_java
from hadoop.local.site import PLUGIN

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
        output([str(java), "-Xmx2g", *OPENS, "-cp", path, PROGRAM, *words], "the load test")
        found = json.loads((place / "found.json").read_text())
    return [trial for trial in found if trial["round"] >= 0]


def _class_path(place: Path) -> str:
    """Of the compiled tests, which Maven knows."""
    file = place / "class-path"
    goals = ["test-compile", "dependency:build-classpath", f"-Dmdep.outputFile={file}", "-Dmdep.includeScope=test"]
    output([*MAVEN, *goals], "the build of the plug-in")
    return file.read_text().strip()
