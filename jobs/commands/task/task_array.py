"""One task for each number of an array: `--array 1-20`."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import click

from infosvc.wire.task_spec import TaskSpec

INDEX = "ARRAY_INDEX"
"""Environment variable of a program with its number."""
MOST = 1_000
LONGEST_NAME = 128
_PART = re.compile(r"(?P<first>\d{1,9})(-(?P<last>\d{1,9})(:(?P<step>\d{1,9}))?)?")


class Indices(click.ParamType[Sequence[int]]):
    """Numbers such as 1-20, 0-100:10 or 1,3,7."""

    name = "indices"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Sequence[int]:
        """The numbers, each once, in their order; a usage error for something else."""
        if not isinstance(value, str):
            return tuple(value)
        found: list[int] = []
        for part in value.split(","):
            said = _PART.fullmatch(part)
            if not said:
                self.fail(f"{value!r} is not an array: write it like 1-20, 0-100:10 or 1,3,7", param, ctx)
            first, step = int(said["first"]), int(said["step"] or 1)
            last = int(said["last"] or first)
            if last < first or step < 1:
                self.fail(f"{part!r} of the array is empty: write the smaller number first", param, ctx)
            if len(found) + (last - first) // step + 1 > MOST:
                self.fail(f"{value!r} has more than {MOST} numbers: ask for several arrays", param, ctx)
            found += range(first, last + 1, step)
        return tuple(dict.fromkeys(found))


def spread(spec: TaskSpec, indices: Sequence[int], key: str) -> Iterator[tuple[TaskSpec, str]]:
    """A task for each number, which its program finds as ARRAY_INDEX, and its key, empty if `key` is.

    The same key makes the same array. Output and checkpoint of each lie below those that were named.
    """
    name = spec.name or PurePosixPath(spec.argv[0]).name
    array = f"array-{hashlib.sha256((key or secrets.token_hex()).encode()).hexdigest()[:12]}"
    for index in indices:
        mark = f"[{index}]"
        variables = {**spec.variables, INDEX: str(index)}
        yield (
            replace(
                spec,
                name=name[: LONGEST_NAME - len(mark)] + mark,
                variables=variables,
                array=array,
                output=_below(spec.output, index),
                checkpoint=_below(spec.checkpoint, index),
            ),
            key and f"{key}-{index}",
        )


def _below(folder: str | None, index: int) -> str | None:
    """A folder of HDFS for each number, as no two tasks may have one."""
    return None if folder is None else f"{folder.rstrip('/')}/{index}"
