"""What NVIDIA's own tool tells of the GPUs of this machine at this moment."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence

from boxes.box import BoxError
from boxes.gpus.cards import Card

PROGRAM = "NVIDIA_SMI"
"""Environment variable with the tool, where it is not `nvidia-smi` of the path."""
SECONDS = 30.0
"""How long it may take: where no process uses a card, it wakes each one."""
_CARD = ("index", "uuid", "name", "memory.total", "memory.free")
_CAPABILITY = "compute_cap"
_UUID = re.compile(r"[A-Za-z0-9-]{1,80}", re.ASCII)


def list_cards() -> list[Card]:
    """All GPUs; BoxError when that cannot be known. Drivers older than 510 tell no compute capability."""
    try:
        rows = _ask("gpu", (*_CARD, _CAPABILITY))
    except BoxError as error:
        if _CAPABILITY not in error.message:
            raise
        rows = [[*row, ""] for row in _ask("gpu", _CARD)]
    return list(_cards(rows))


def list_users() -> dict[str, list[int]]:
    """The processes that compute on GPUs, by the UUID of the card; BoxError when that cannot be known."""
    found: dict[str, list[int]] = {}
    for uuid, pid in (row for row in _ask("compute-apps", ("gpu_uuid", "pid")) if len(row) == 2):
        found.setdefault(uuid, []).append(_number(pid))
    return found


def _cards(rows: Sequence[Sequence[str]]) -> Iterator[Card]:
    """One for each row that is one; the name of a model may hold a comma."""
    for row in rows:
        if len(row) < 6 or not _UUID.fullmatch(row[1]):
            continue
        index, uuid, *name, total, free, capability = row
        known = capability if re.fullmatch(r"\d+\.\d+", capability, re.ASCII) else ""
        yield Card(_number(index), ", ".join(name), _number(total), known, uuid, _number(free))


def _number(text: str) -> int:
    """A whole number; 0 where the tool does not tell it."""
    return int(text) if text.isascii() and text.isdecimal() else 0


def _ask(what: str, fields: Sequence[str]) -> list[list[str]]:
    """The rows of a query; memory is in MB."""
    program = os.environ.get(PROGRAM, "nvidia-smi")
    words = [program, f"--query-{what}={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        ran = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise BoxError(f"{program} does not tell of the GPUs within {SECONDS:g} s") from error
    except OSError as error:
        raise BoxError(
            f"{program} cannot be run: {error.strerror}", remedy="GPUs need NVIDIA's driver and its nvidia-smi"
        ) from error
    if ran.returncode != 0:
        said = (ran.stdout.strip() or ran.stderr.strip() or "it says nothing").splitlines()[0]
        raise BoxError(f"{program} ends with {ran.returncode} and tells nothing of the GPUs: {said}")
    return [line.split(", ") for line in ran.stdout.splitlines() if line.strip()]
