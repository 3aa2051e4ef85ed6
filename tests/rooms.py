"""The folders of the product, as tests look at all of them."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = (
    "nodewise",
    "infosvc",
    "collectors",
    "locality",
    "hadoop",
    "boxes",
    "environments",
    "learning",
    "jobs",
    "bench",
)
