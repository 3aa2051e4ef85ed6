"""Which containers a job had, noted by its application master in its own log, and what they all printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hadoop.logs import container_log, master_container

STREAMS = ("stdout", "stderr")
_LINE = re.compile(r"^started (container_\S+) at (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Log:
    """One stream of one container."""

    container_id: str
    address: str
    stream: str
    text: str


def log_line(container_id: str, address: str) -> str:
    """How the application master notes a container that it started."""
    return f"started {container_id} at {address}"


def parse_started(text: str) -> list[tuple[str, str]]:
    """(container id, NodeManager's HTTP address) of each worker, from the application master's output.

    >>> parse_started("plan\\nstarted container_1_0001_01_000002 at 127.0.1.11:8042\\n")
    [('container_1_0001_01_000002', '127.0.1.11:8042')]
    """
    return _LINE.findall(text)


def fetch(rm_http: str, application_id: str, user: str) -> Iterator[Log]:
    """The application master's streams, then those of each worker; HadoopError when a node keeps no log any more."""
    containers = [master_container(rm_http, application_id)]
    for container_id, address in containers:
        for stream in STREAMS:
            text = container_log(container_id, address, stream, user)
            if len(containers) == 1:
                containers += parse_started(text)
            yield Log(container_id, address, stream, text)
