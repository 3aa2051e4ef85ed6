"""Takes GPUs of this machine for a program: those with the most free memory that nobody uses, for it alone.

One process of the machine looks and takes at a time, so that two that want several never hold a part each and wait for
the rest.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from boxes.box import BoxError
from boxes.gpus.cards import Card, Wanted, find_mismatch, find_obstacle
from boxes.gpus.locks import FOLDER, VARIABLE, Locks
from boxes.gpus.nvidia_smi import list_cards, list_users

WAIT_SECONDS = 300.0
"""How long to wait for cards that others use: YARN gives a seat as soon as a program that had them has ended."""
AGAIN_SECONDS = 1.0
TURN = "nodewise-gpus"
CDI_KIND = "nvidia.com/gpu"
_MOST_NAMED = 8


@dataclass(frozen=True)
class Taken:
    """The cards that a program has; `variables` are those of its environment by which it sees them, and no others.

    locks    descriptors of this process that hold the cards
    """

    cards: tuple[Card, ...] = ()
    locks: tuple[int, ...] = ()

    @property
    def variables(self) -> Mapping[str, str]:
        """For CUDA, and for what runs programs in containers."""
        if not self.cards:
            return {}
        names = ",".join(card.uuid for card in self.cards)
        return {"CUDA_VISIBLE_DEVICES": names, "NVIDIA_VISIBLE_DEVICES": names}

    @property
    def devices(self) -> list[tuple[str, ...]]:
        """Each card by the names that CDI files may have for it: its UUID counts before its index, which may change."""
        return [(f"{CDI_KIND}={card.uuid}", f"{CDI_KIND}={card.index}") for card in self.cards]

    @property
    def text(self) -> str:
        """In words."""
        return ", ".join(f"{card.index} ({card.model})" for card in self.cards)


@contextmanager
def take_cards(
    wanted: Wanted,
    pause: Callable[[float], None] = time.sleep,
    say: Callable[[str], None] = lambda _: None,
    seconds: float = WAIT_SECONDS,
) -> Iterator[Taken]:
    """The cards that a program has for itself while the block runs, none where none are wanted.

    While too few are free, `say` hears why, and `pause` waits for so many seconds; it raises to give up. BoxError when
    that takes longer than `seconds`, the machine has no such cards, or they cannot be locked.
    """
    if not wanted.count:
        yield Taken()
        return
    with ExitStack() as held:
        locks = Locks(Path(os.environ.get(VARIABLE, FOLDER)))
        held.callback(locks.close)
        yield _Taking(wanted, locks, held).take(pause, say, seconds)


class _Taking:
    """Of one program; what it holds is given back by `held`."""

    def __init__(self, wanted: Wanted, locks: Locks, held: ExitStack) -> None:
        self._wanted = wanted
        self._locks = locks
        self._held = held

    def take(self, pause: Callable[[float], None], say: Callable[[str], None], seconds: float) -> Taken:
        begun, why, said = time.monotonic(), "", ""

        def wait(pause_seconds: float) -> None:
            nonlocal said
            if time.monotonic() - begun > seconds:
                raise BoxError(
                    f"its GPUs were not free within {seconds:g} s: {why or 'others are taking theirs'}",
                    remedy="submit it again once they are, or for other nodes",
                )
            if why != said:
                said = why
                say(f"waiting for GPUs: {why}")
            pause(pause_seconds)

        while True:
            with self._locks.hold(TURN, wait):
                found, why = self._take_now()
            if found:
                return found
            wait(AGAIN_SECONDS)

    def _take_now(self) -> tuple[Taken | None, str]:
        """What is wanted, if so many are free, else why not; then nothing is held."""
        cards, users = list_cards(), list_users()
        if why := find_obstacle(self._wanted, cards):
            raise BoxError(why, remedy="ask for fewer GPUs, or for others")
        will_do = [card for card in cards if not find_mismatch(self._wanted, card)]
        mine: dict[int, Card] = {}
        reasons: list[str] = []
        with ExitStack() as locked:
            for card in sorted(will_do, key=lambda one: (-one.free_mb, one.index)):
                handle, why = self._try(card, users.get(card.uuid, ()))
                if handle is None:
                    reasons.append(why)
                    continue
                locked.callback(os.close, handle)
                mine[handle] = card
                if len(mine) == self._wanted.count:
                    self._held.enter_context(locked.pop_all())
                    return Taken(tuple(mine.values()), tuple(mine)), ""
        return None, self._text(len(mine), reasons)

    def _try(self, card: Card, users: Sequence[int]) -> tuple[int | None, str]:
        """The lock of a card that nobody uses, else why there is none. No task or job uses one without a lock."""
        handle = self._locks.try_to_lock(f"{TURN}.{card.uuid}")
        if handle is None:
            return None, f"a task or job has GPU {card.index}"
        if users:
            os.close(handle)
            return None, f"process {users[0]}, which is not of a task or job, uses GPU {card.index}"
        return handle, ""

    def _text(self, free: int, reasons: list[str]) -> str:
        more = len(reasons) - _MOST_NAMED
        named = [*reasons[:_MOST_NAMED], *([f"{more} more are in use"] if more > 0 else [])]
        return f"{free or 'none'} of {self._wanted.count} is free, {', '.join(named)}"
