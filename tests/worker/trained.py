"""Weights that mean something, and real images: made once for all tests of the worker's environment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Trained:
    """Files that `jobs.training` wrote, what it said of them, and the images of `folder`."""

    folder: Path
    weights: Path
    int8: Path
    said: list[dict[str, object]]

    @property
    def pictures(self) -> list[Path]:
        """All, by name."""
        return sorted(self.folder.glob("*.jpg"))
