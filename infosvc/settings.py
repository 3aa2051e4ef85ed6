"""Every key of the service once, with default, unit and help; read by the command, given to create_app()."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


def _key(default: Any, unit: str, text: str, *, secret: bool = False) -> Any:
    return field(default=default, repr=not secret, metadata={"unit": unit, "help": text})


@dataclass(frozen=True)
class Settings:
    """What one service runs with; `database` and `token` are secrets and stay out of its repr."""

    database: str = _key("", "URL", "SQLite file or MySQL/MariaDB database of the tables", secret=True)
    token: str = _key("", "text", "what a caller must show to write", secret=True)
    ready_within: float = _key(15.0, "seconds", "a node heard of within this time is ready")
    lost_after: float = _key(60.0, "seconds", "a node not heard of for this time is lost")
    max_body: int = _key(4 << 20, "bytes", "largest body of a request")
    batch: int = _key(500, "changes", "most changes in one commit")
    patience: float = _key(8.0, "seconds", "how long a write waits for the database")
    notice_timeout: float = _key(2.0, "seconds", "how long the master waits for an agent it tells something")
    notice_threads: int = _key(4, "threads", "how many agents are told at the same time")
    threads: int = _key(16, "threads", "requests answered at the same time")


@dataclass(frozen=True)
class Clock:
    """Two clocks: `monotonic` for ages while the service runs, `wall` (Unix seconds) for what outlives it."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
