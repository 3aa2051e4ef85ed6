"""The devices that a program gets where CDI files describe them, and does without elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from boxes.box import Program


def with_wished(program: Program, known: Collection[str]) -> Program:
    """A program with all devices that it wishes for, where all are among the known ones; else as it is."""
    names = find_names(program.wished, known)
    added = [name for name in names if name not in program.devices]
    return replace(program, devices=[*program.devices, *added]) if added else program


def find_names(wished: Sequence[Sequence[str]], known: Collection[str]) -> list[str]:
    """For each device the first of its names that is known; nothing where a device has none.

    >>> find_names([("card=GPU-a", "card=0"), ("card=GPU-b", "card=1")], {"card=0", "card=GPU-b", "card=1"})
    ['card=0', 'card=GPU-b']
    >>> find_names([("card=GPU-a", "card=0"), ("card=GPU-b", "card=1")], {"card=0"})
    []
    """
    found = [next((name for name in names if name in known), "") for names in wished]
    return found if all(found) else []
