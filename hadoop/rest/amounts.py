"""How much of what YARN counts: memory, cores, and whatever other types of resource a cluster was told of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MEMORY = "memory-mb"
VCORES = "vcores"
Amounts = Mapping[str, int]
"""By type of resource; of a type that is not in it there is nothing, or nothing is known."""


def add(amounts: Iterable[Amounts]) -> dict[str, int]:
    """All of them together.

    >>> add([{"memory-mb": 512}, {"memory-mb": 256, "vcores": 1}])
    {'memory-mb': 768, 'vcores': 1}
    """
    found: dict[str, int] = {}
    for one in amounts:
        for name, count in one.items():
            found[name] = found.get(name, 0) + count
    return found


def subtract(first: Amounts, second: Amounts) -> dict[str, int]:
    """The first without what the second has, never less than nothing.

    >>> subtract({"memory-mb": 768, "vcores": 1}, {"memory-mb": 512, "vcores": 2})
    {'memory-mb': 256, 'vcores': 0}
    """
    return {name: max(0, count - second.get(name, 0)) for name, count in first.items()}


def split(amounts: Amounts, count: int) -> list[dict[str, int]]:
    """So many parts, as equal as whole numbers can be; none for a count of 0.

    >>> split({"yarn.io/gpu": 3}, 2)
    [{'yarn.io/gpu': 1}, {'yarn.io/gpu': 2}]
    """
    return [
        {name: number * (part + 1) // count - number * part // count for name, number in amounts.items()}
        for part in range(count)
    ]


def parse_amounts(told: Mapping[str, Any] | None) -> dict[str, int]:
    """Read a resource as the ResourceManager tells it over REST; of nothing, and of null, there is nothing.

    >>> parse_amounts({"memory": 768, "vCores": 1, "resourceInformations": {"resourceInformation": []}})
    {'memory-mb': 768, 'vcores': 1}
    """
    told = told or {}
    usual = ((MEMORY, told.get("memory")), (VCORES, told.get("vCores")))
    found = {name: int(count) for name, count in usual if count is not None}
    rows = (told.get("resourceInformations") or {}).get("resourceInformation") or ()
    return found | {str(one["name"]): int(one["value"]) for one in rows if one["name"] not in (MEMORY, VCORES)}


def say_amount(name: str, count: int) -> str:
    """So much of a type, as people read it.

    >>> say_amount("memory-mb", 1024), say_amount("vcores", 1), say_amount("yarn.io/gpu", 2)
    ('1,024 MB', '1 vcore', '2 yarn.io/gpu')
    """
    unit = {MEMORY: "MB", VCORES: "vcore" if count == 1 else "vcores"}.get(name, name)
    return f"{count:,} {unit}"


def join_words(parts: Sequence[str]) -> str:
    """What stands in a row in a sentence.

    >>> join_words(["1,024 MB", "1 vcore", "2 yarn.io/gpu"])
    '1,024 MB, 1 vcore and 2 yarn.io/gpu'
    """
    return " and ".join([", ".join(parts[:-1]), *parts[-1:]]) if len(parts) > 1 else "".join(parts)
