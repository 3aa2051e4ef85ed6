"""Which GPUs will do for a program that asks for some, and why the others will not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

KEPT_SHARE = 0.08
"""Of its memory, what a card may keep for itself: one that is sold with 16 GB tells 15,360 MB or less."""
_MB = 1 << 20


@dataclass(frozen=True)
class Wanted:
    """`count` GPUs, each such that it will do.

    model         words that the name of its model has, "" for any
    memory_mb     that it has or more, 0 for any
    capability    of CUDA, such as 7.5, that it has or more, "" for any
    """

    count: int = 0
    model: str = ""
    memory_mb: int = 0
    capability: str = ""

    @property
    def is_picky(self) -> bool:
        """Whether not every GPU will do."""
        return bool(self.model or self.memory_mb or self.capability)


@dataclass(frozen=True)
class Card:
    """One GPU as it tells of itself: what it does not tell is 0 or "".

    uuid       by which programs and locks name it
    free_mb    of its memory, what was free at that moment
    """

    index: int
    model: str = ""
    memory_mb: int = 0
    capability: str = ""
    uuid: str = ""
    free_mb: int = 0


def find_mismatch(wanted: Wanted, card: Card) -> str:
    """Why a card will not do, "" where it will.

    >>> find_mismatch(Wanted(1, model="t4", memory_mb=16384, capability="7.0"), Card(0, "Tesla T4", 15360, "7.5"))
    ''
    >>> find_mismatch(Wanted(1, capability="8.0"), Card(0, "Tesla T4", 15360, "7.5"))
    'has compute capability 7.5, not 8.0'
    """
    if not _words(wanted.model) <= _words(card.model):
        return f"is not a {wanted.model}"
    if wanted.memory_mb * (1 - KEPT_SHARE) > card.memory_mb:
        has = f"has {card.memory_mb:,} MB" if card.memory_mb else "does not tell its memory"
        return f"{has}, not {wanted.memory_mb:,} MB"
    if _version(wanted.capability) > _version(card.capability):
        has = f"has compute capability {card.capability}" if card.capability else "tells no compute capability"
        return f"{has}, not {wanted.capability}"
    return ""


def find_obstacle(wanted: Wanted, cards: Sequence[Card] | None) -> str:
    """Why a node with these cards cannot give what is wanted, "" where it can, whoever uses them now.

    None stands for a node that tells nothing of its cards: it is left out only where not every card will do.

    >>> find_obstacle(Wanted(2), [Card(0, "Tesla T4")])
    'it has 1 GPU, and 2 are asked for'
    """
    if cards is None:
        return "it tells nothing of its GPUs" if wanted.is_picky else ""
    if len(cards) < wanted.count:
        return f"it has {len(cards) or 'no'} GPU{'' if len(cards) == 1 else 's'}, and {asked(wanted)}"
    wrong = [(card, why) for card in cards if (why := find_mismatch(wanted, card))]
    right = len(cards) - len(wrong)
    if right >= wanted.count:
        return ""
    card, why = wrong[0]
    which = f"GPU {card.index}{f', {card.model},' if card.model else ''} {why}"
    of_all = "its only GPU will not do" if len(cards) == 1 else f"{right or 'none'} of its {len(cards)} GPUs will do"
    return f"{of_all}, and {asked(wanted)}: {which}"


def asked(wanted: Wanted) -> str:
    """How many are wanted, as the end of a sentence."""
    return f"{wanted.count} {'is' if wanted.count == 1 else 'are'} asked for"


def read_told(text: str) -> list[Card] | None:
    """The cards of a node as its collector tells them: a list of JSON; None when it is something else.

    >>> read_told('[{"index": 0, "model": "Tesla T4", "memory_total_bytes": 16106127360, "compute_capability": "7.5"}]')
    [Card(index=0, model='Tesla T4', memory_mb=15360, capability='7.5', uuid='', free_mb=0)]
    """
    try:
        return [_read_card(one) for one in json.loads(text)]
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None


def _read_card(told: Mapping[str, Any]) -> Card:
    return Card(
        index=int(told["index"] or 0),
        model=str(told.get("model") or ""),
        memory_mb=int(told.get("memory_total_bytes") or 0) // _MB,
        capability=str(told.get("compute_capability") or ""),
    )


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower()))


def _version(text: str) -> tuple[int, ...]:
    """As it compares; of what is no version, the least."""
    return tuple(map(int, text.split("."))) if re.fullmatch(r"\d+(\.\d+)*", text, re.ASCII) else ()
