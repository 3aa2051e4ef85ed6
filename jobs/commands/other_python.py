"""What the worker's Python makes for a command, since the frameworks are in its environment alone."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from tempfile import TemporaryFile
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from hadoop.installation import ROOT
from jobs.application.package import name_python
from jobs.commands.options import progress_console
from jobs.errors import JobError


def run(python: str, module: str, words: Sequence[str], variables: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What `python -m module words` made, while a bar on stderr shows how far it is; JobError with its sentence."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=progress_console) as bar:
        task = bar.add_task("starting", total=None)

        def show_step(line: dict[str, Any]) -> None:
            loss = f", loss {line['loss']:.2f}" if "loss" in line else ""
            bar.update(task, description=line["doing"] + loss, completed=line["step"], total=line["of"])

        for line in _lines(python, ["-m", module, *words], variables or {}):
            if "refused" in line:
                raise JobError(line["refused"])
            if "done" in line:
                made: dict[str, Any] = line["done"]
                return made
            show_step(line)
    raise AssertionError("a process that ends well has said what it made")


def _lines(python: str, words: Sequence[str], variables: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Each line that it says; it ends with us, whatever happens here."""
    threads = {"OMP_NUM_THREADS": str(os.cpu_count() or 1), "OMP_WAIT_POLICY": "passive"}
    environment = {**threads, **os.environ, **variables, "PYTHONPATH": str(ROOT)}
    command = [python, "-W", "ignore", *words]
    with TemporaryFile("w+") as complaints:
        try:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=complaints, text=True, env=environment)
        except OSError as error:
            raise JobError(
                f"{name_python(python)} cannot be started ({error.strerror})", remedy="name a --worker-python"
            ) from None
        with process:
            try:
                yield from map(json.loads, process.stdout or ())
            finally:
                process.kill()
        complaints.seek(0)
        last = (complaints.read().strip().splitlines() or ["it said nothing"])[-1]
    raise JobError(f"{python} ended before it was done (status {process.returncode}): {last}")
