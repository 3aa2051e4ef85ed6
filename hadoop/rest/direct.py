"""Opens the pages of a cluster's own daemons."""

from __future__ import annotations

from typing import Any
from urllib.request import ProxyHandler, build_opener


def open_direct(url: str, timeout: float) -> Any:
    """As urllib's urlopen, but a proxy from the environment never stands between a program and its own cluster."""
    return build_opener(ProxyHandler({})).open(url, timeout=timeout)
