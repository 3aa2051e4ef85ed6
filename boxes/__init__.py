"""What runs a program in isolation: one file a kind of box, and one line here.

NAME  ->  module:class; the class is a Box (boxes.box), made without arguments
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from boxes.box import Box, BoxError

BOXES: Mapping[str, str] = {
    "docker": "boxes.docker:DockerBox",
    "process": "boxes.process:ProcessBox",
}


def create(name: str) -> Box:
    """A new box in which nothing runs yet; only its kind is imported. BoxError lists the kinds there are."""
    if name not in BOXES:
        raise BoxError(f"there is no box {name!r}", remedy=f"choose one of {', '.join(sorted(BOXES))}")
    module, _, made = BOXES[name].partition(":")
    box: Box = getattr(import_module(module), made)()
    return box
