"""Whether a job's network fits, found out here by the worker's Python before anything is submitted.

What the Python of a virtual environment has found is kept in the user's cache, as long as neither the files nor that
environment nor our code change.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hadoop.installation import ROOT
from jobs import code_archive, own_cache
from jobs.application.package import name_python
from jobs.engines.class_names import check_labels, read_labels
from jobs.engines.network import FRAMEWORKS, NAMED, Network, network_named
from jobs.engines.parameters import CLASSES, parameters
from jobs.errors import JobError
from jobs.images.rows_size import LARGEST_ROW, ROW_BYTES

SECONDS = 600
MOST_KEPT = 64
"""Answers."""
ALONE = re.compile(r"^\s*include-system-site-packages\s*=\s*false\s*$", re.IGNORECASE | re.MULTILINE)
"""What an environment says of itself that has all its packages in one folder."""


def check(network: Network, python: str, batch: int, say: Callable[[str], None]) -> int:
    """About the most bytes of a row; JobError when the network does not fit.

    Who has no worker's Python here has a network by name checked without its framework.
    """
    if not any(network.files()):
        return ROW_BYTES
    body = {"engine": network.engine, "model": network.model, "batch": batch}
    body |= {name: str(file.absolute()) for name, file in network.files()}
    try:
        answer = _find_answer(network, python, body)
    except OSError as error:
        named = name_python(python)
        if network.graph is not None:
            raise JobError(
                (f"{named} cannot be started ({error.strerror}), and it checks models before they are submitted"),
                remedy="name a --worker-python that is on this machine too",
            ) from None
        if not _check_without_framework(network):
            say(f"{network.program} is checked only on the nodes: {named} cannot be started here ({error.strerror})")
        return ROW_BYTES
    for note in answer["notes"]:
        say(f"{network.program}: {note}")
    if answer["row_bytes"] > LARGEST_ROW:
        raise JobError(
            (f"a row of this model has {answer['row_bytes']:,} bytes, and at most {LARGEST_ROW:,} can be stored"),
            remedy="choose a model with smaller outputs",
        )
    return int(answer["row_bytes"])


def _check_without_framework(network: Network) -> bool:
    """Whether weights and labels could be looked at here; JobError when they do not fit the network's layers."""
    if network.model not in NAMED:
        return False
    try:
        classes = (
            len(parameters(network_named(network.model), network.weights)["output.bias"])
            if network.weights
            else CLASSES
        )
        check_labels(network.labels, read_labels(network.labels), classes)
    except ValueError as error:
        raise JobError(str(error)) from None
    return True


def _find_answer(network: Network, python: str, body: dict[str, Any]) -> dict[str, Any]:
    """What the other Python finds, or has found before; errors as of `_answer`.

    Of engines that are users' own nothing is kept: they change without a trace.
    """
    seen = _see_python(python) if network.engine in FRAMEWORKS else None
    if seen is None:
        return _answer(python, json.dumps(body))
    files = {name: (file.name, _sha256(file)) for name, file in network.files()}
    about = [network.engine, network.model, body["batch"], files, seen, code_archive.digest()]
    name = f"fits-{hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]}.json"
    with suppress(ValueError):  # it is damaged
        if kept := own_cache.load(name):
            found: dict[str, Any] = json.loads(kept)
            return found
    found = _answer(python, json.dumps(body))
    own_cache.keep(name, json.dumps(found).encode(), MOST_KEPT)
    return found


def _see_python(python: str) -> list[Any] | None:
    """What changes when the Python of a virtual environment does, or what is installed there; None for any other one.

    Whatever installs or removes a package changes the time of the folder that holds all. OSError as `stat`.
    """
    program = Path(python)
    place = program.parent.parent
    about, packages = place / "pyvenv.cfg", sorted(place.glob("lib/python*/site-packages"))
    if not (program.is_absolute() and packages and about.is_file() and ALONE.search(about.read_text(errors="replace"))):
        return None
    times = [(str(one), one.stat().st_size, one.stat().st_mtime_ns) for one in (program, about, *packages)]
    return [str(program.resolve()), times]


def _sha256(file: Path) -> str:
    """ "" for a file that cannot be read, which the other Python tells."""
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError:
        return ""


def _answer(python: str, asked: str) -> dict[str, Any]:
    """What the other Python found; OSError when it cannot be started, JobError when it refuses or ends early."""
    command = [python, "-W", "ignore", "-m", "jobs.engines", asked]
    environment = {"OMP_WAIT_POLICY": "passive"} | dict(os.environ) | {"PYTHONPATH": str(ROOT)}
    try:
        ran = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise JobError(f"the model was not ready after {SECONDS} s", remedy="choose a smaller one") from None
    try:
        answer: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = (ran.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise JobError(f"{python} ended before it had checked the model (status {ran.returncode}): {last}") from None
    if "refused" in answer:
        raise JobError(answer["refused"])
    fits: dict[str, Any] = answer["fits"]
    return fits
