"""A long bench in parts: each is a run of its own, kept as JSON, and the parts of a range of commits are summed up."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from bench.info.errors import BenchError

HERE = Path(__file__).resolve().parent
DIRTY = "-dirty"
"""What stands behind a commit when files differ from it."""
Item = TypeVar("Item")


class Part(NamedTuple):
    """One part of so many, from 1."""

    number: int
    of: int

    def take(self, items: Sequence[Item]) -> list[Item]:
        """Every of-th item, so that each part has a bit of everything.

        >>> [Part(number, 3).take("abcdefg") for number in (1, 2, 3)]
        [['a', 'd', 'g'], ['b', 'e'], ['c', 'f']]
        """
        return list(items[self.number - 1 :: self.of])


class PartType(click.ParamType[Part]):
    """`3/20` on the command line."""

    name = "i/n"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Part:
        """Refuse what is not a part."""
        if isinstance(value, Part):
            return value
        number, _, of = str(value).partition("/")
        if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
            self.fail(f"{value!r} is not a part: write 3/20 for the third of twenty", param, ctx)
        return Part(int(number), int(of))


def describe_commit() -> str:
    """The commit that is checked out, with DIRTY behind it when files differ from it; BenchError without git."""
    return _git("describe", "--always", "--abbrev=40", "--match=", f"--dirty={DIRTY}")


def read_parts(directory: Path, bench: str, commits: str) -> list[dict[str, Any]]:
    """The kept parts that were measured at a commit of a range (`A..B`, or one commit and all before it).

    Of a part that was measured twice with the same seed and shape, if it has one, the newest counts. Parts that name
    their pieces are the same when these are: there may be more parts by now. BenchError when git knows no such range.
    """
    known = set(_git("rev-list", commits).split())
    newest: dict[tuple[Any, ...], dict[str, Any]] = {}
    for file in sorted(directory.glob(f"{bench}-*.json")):
        record = json.loads(file.read_text())
        if "part" in record and record["commit"] in known:
            part = record.get("pieces") or record["part"]
            newest[record["seed"], record["on"], record.get("shape"), *part] = record
    return list(newest.values())


def find_missing_parts(records: Sequence[dict[str, Any]]) -> list[str]:
    """The parts of each seed and place that nobody has measured, as `seed 1, local: 2/3`."""
    runs: dict[tuple[int, str, int], set[int]] = {}
    for record in records:
        runs.setdefault((record["seed"], record["on"], record["part"][1]), set()).add(record["part"][0])
    return [
        f"seed {seed}, {on}: {number}/{of}"
        for (seed, on, of), done in sorted(runs.items())
        for number in range(1, of + 1)
        if number not in done
    ]


def trials_of(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The trials of all parts."""
    return [trial for record in records for trial in record["trials"]]


def list_wrong(records: Sequence[dict[str, Any]], what: str) -> list[str]:
    """A line for each trial, called `what` there, that went wrong, with its faults and why."""
    return [
        f"- seed {record['seed']}, part {record['part'][0]}/{record['part'][1]}, {what} {one['number']} "
        f"({', '.join(one['faults'])}): {'; '.join(one['wrong'])}"
        for record in records
        for one in record["trials"]
        if one["wrong"]
    ]


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=HERE, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"git {' '.join(words)} failed: {done.stderr.strip()}")
    return done.stdout.strip()
