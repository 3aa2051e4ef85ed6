"""The folders of the product, as tests look at all of them, and the contracts of who may import whom."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
PRODUCT = tuple(room for room in ROOMS if room != "bench")
"""A bench asks Hadoop by itself: it measures the product by something else."""
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]


def floors(contract: Mapping[str, Any]) -> list[list[str]]:
    """The modules of each layer of a contract, from the highest layer on."""
    room = "".join(f"{name}." for name in contract.get("containers", []))
    return [[f"{room}{name}" for name in layer.split(" | ")] for layer in contract["layers"]]
