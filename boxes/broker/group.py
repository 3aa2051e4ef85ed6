"""Names the processes of a container, by its control group."""

from __future__ import annotations

from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")


def processes(pid: int, container_id: str) -> list[int]:
    """All processes of a container by one of them, with those of its terminals; OSError when that cannot be told."""
    return [
        int(line) for file in _folder(pid, container_id).rglob("cgroup.procs") for line in file.read_text().splitlines()
    ]


def _folder(pid: int, container_id: str) -> Path:
    """Where the kernel shows the control group, of version 2 or of the first version that there is."""
    for line in Path("/proc", str(pid), "cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        folder = GROUPS / controllers / path.lstrip("/")
        if container_id in path and folder.is_dir():
            return folder
    raise FileNotFoundError(f"the control group of {container_id} is not there")
