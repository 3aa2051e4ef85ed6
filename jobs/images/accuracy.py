"""How often a job was right about images whose truth is known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.images import labels
from jobs.images.labels import Label

PACKED = ".rec#"
"""Stands between the file and the name of an image that is packed."""
UNNAMED = re.compile(r"class \d+")
"""What a class is called by a job that was given no names."""


@dataclass(frozen=True)
class Accuracy:
    """Images: `right`, `wrong` (those with an error too), `unknown` (their truth is not); by class: right, of."""

    right: int
    wrong: int
    unknown: int
    by_class: dict[str, tuple[int, int]]

    @property
    def ratio(self) -> float | None:
        """Right ones of those whose truth is known; None when there are none."""
        known = self.right + self.wrong
        return self.right / known if known else None


def accuracy(rows: Iterable[Mapping[str, Any]], truth_file: Path) -> Accuracy:
    """Rows of a job, held against the `labels.tsv` of its images; JobError when that is another kind of file."""
    truth = labels.read(truth_file)
    unknown = 0
    by_class: dict[str, tuple[int, int]] = {}
    for row in rows:
        label = _label(str(row["path"]), truth)
        if label is None:
            unknown += 1
            continue
        right, known = by_class.get(label.name, (0, 0))
        by_class[label.name] = (right + _is_right(row, label), known + 1)
    right = sum(one for one, _ in by_class.values())
    return Accuracy(
        right, sum(known for _, known in by_class.values()) - right, unknown, dict(sorted(by_class.items()))
    )


def _label(path: str, truth: Mapping[str, Label]) -> Label | None:
    """The table names files as below some folder: the longest end of the path that it knows."""
    file, packed, name = path.partition(PACKED)
    parts = (name if packed else file).strip("/").split("/")
    ends = ("/".join(parts[first:]) for first in range(len(parts)))
    return next((truth[end] for end in ends if end in truth), None)


def _is_right(row: Mapping[str, Any], label: Label) -> bool:
    if UNNAMED.fullmatch(str(row["class_name"])):
        return bool(row["class_id"] == label.number)
    return bool(row["class_name"] == label.name)
