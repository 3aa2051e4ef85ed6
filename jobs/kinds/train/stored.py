"""Checkpoints of a run in HDFS: a folder with files named as those of members, STEPS-SHA256.state."""

from __future__ import annotations

from hadoop.client.filesystem import FileSystem
from learning.state.checkpoints import steps_of

CHECKPOINTS = "checkpoints"


def newest(filesystem: FileSystem, output: str) -> int:
    """Steps of the newest checkpoint, 0 without any."""
    folder = f"{output}/{CHECKPOINTS}"
    if not filesystem.exists(folder):
        return 0
    names = (entry.name for entry in filesystem.entries(folder))
    return max((steps for name in names if (steps := steps_of(name)) is not None), default=0)
