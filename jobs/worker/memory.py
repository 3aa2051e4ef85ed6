"""How a container's program keeps the memory that it has had."""

from __future__ import annotations

from collections.abc import Mapping

KEPT_MEMORY: Mapping[str, str] = {
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
}
"""For programs that need the same blocks again and again, as each step of training does.

By itself glibc gives large blocks back to the system and takes them anew, and the kernel fills each page with zeros:
on few CPUs that is up to a third of a step. It takes no larger threshold for single blocks (mallopt(3)).
"""
