"""What an operator has settled for the boxes of one machine, in a file that only root may write."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from boxes.broker.order import IMAGE


@dataclass(frozen=True)
class Settings:
    """Limits of all boxes here.

    folders          a box sees one folder below one of these, which its caller owns
    images           the file with the images that are allowed: a line `sha256:...` each, behind it what people call it
    docker           Docker's socket
    most_memory_mb   of one box, as `most_vcores`
    most_processes   of one box, threads counted
    least_uid        callers with a lower user id are refused: by default root is
    cgroup_parent    the control group of all boxes, empty for Docker's own
    cdi              folders of CDI files, of which boxes may have devices; with none they get no device
    """

    folders: Sequence[str]
    images: str = "/etc/nodewise/images"
    docker: str = "/run/docker.sock"
    most_memory_mb: int = 1 << 20
    most_vcores: int = 1024
    most_processes: int = 4096
    least_uid: int = 1
    cgroup_parent: str = ""
    cdi: Sequence[str] = ()

    @classmethod
    def load(cls, file: Path) -> Settings:
        """OSError, ValueError or TypeError when the file is not as it should be."""
        _check_owner(file)
        return cls(**json.loads(file.read_text()))

    def allowed_images(self) -> set[str]:
        """The images that an operator allows; none when the file is missing."""
        file = Path(self.images)
        if not file.exists():
            return set()
        _check_owner(file)
        first = (line.split(maxsplit=1)[0] for line in file.read_text().splitlines() if line.strip())
        return {word for word in first if IMAGE.fullmatch(word)}


def _check_owner(file: Path) -> None:
    """PermissionError when others than this process's user may write a file."""
    found = file.stat()
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"others than root may write {file}: give it to root, with mode 0644")
