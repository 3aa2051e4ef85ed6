"""Checks what a cluster needs before it can start: the plug-in, if it is wanted, and room on the disk."""

from __future__ import annotations

import shutil
from pathlib import Path

from hadoop.errors import HadoopError
from hadoop.installation import Part, remedy

# With less room than this, daemons that start neither work nor end.
STUCK_BYTES = 1_000_000


def check_plugin(jar: Path) -> None:
    """Raise HadoopError unless the plug-in of the ResourceManager is there."""
    if not jar.is_file():
        raise HadoopError(f"there is no {jar}", remedy=f"{remedy(Part.PLUGIN)}, or leave --plugin out")


def check_kerberos(jar: Path) -> None:
    """Raise HadoopError unless the programs of Kerberos are there, and what lets NodeManagers show logs with it."""
    from hadoop.local.kerberos import programs  # other clusters need nothing of it

    programs.check()
    if not jar.is_file():
        raise HadoopError(f"there is no {jar}", remedy=f"{remedy(Part.PLUGIN)}, or leave --kerberos out")


def check_disk(directory: Path, min_free_bytes: int) -> None:
    """Raise HadoopError when the file system of this directory has fewer free bytes."""
    free = shutil.disk_usage(directory).free
    if free < min_free_bytes:
        raise HadoopError(
            f"the disk under {directory} is full: {free / 1e6:,.0f} MB are free, and a cluster "
            f"needs {min_free_bytes / 1e6:,.0f} MB",
            remedy="free some space or use another --home",
        )
