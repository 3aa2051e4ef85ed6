"""The file that names the classes of a network, one a line."""

from __future__ import annotations

from pathlib import Path


def read_labels(file: Path | None) -> list[str] | None:
    """What the classes are called; ValueError when that is not text."""
    if file is None:
        return None
    try:
        return file.read_text("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{file.name} is not UTF-8 ({error.reason} at byte {error.start}): save it as UTF-8") from None


def check_labels(file: Path | None, labels: list[str] | None, classes: int | None) -> None:
    """ValueError unless there are as many as classes; `classes` is None for a network that has none."""
    if file is not None and labels is not None and classes != len(labels):
        knows = f"tells {classes} classes apart" if classes else "gives tensors, which have no classes"
        raise ValueError(f"{file.name} names {len(labels)} classes, and the network {knows}")
