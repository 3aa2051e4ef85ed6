"""Waits for threads that a program has begun and does not join itself."""

from __future__ import annotations

import threading


def join_threads(name: str) -> None:
    """Until each thread whose name begins so has ended, or for a minute."""
    for thread in threading.enumerate():
        if thread.name.startswith(name):
            thread.join(60)
