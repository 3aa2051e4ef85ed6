"""The next generation: who goes on at which rank, from which step, and who needs the state of another.

A step counts as done for a member when it has applied it. What it applied came from all members together, so of
several survivors the one that has done most is right, and no step is taken back. Those that have done less repeat
nothing: they get the state. When nobody is left who has a state as late as the last checkpoint, all begin there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from locality.training.generation_events import Generation

NO_STATE = -1
"""Steps done by a process that has nothing of the run."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A process that belongs to no generation now: the steps that its state has, and where it offers a store."""

    steps: int
    store: str


def choose_members(
    survivors: Sequence[str], waiting: Sequence[str], wanted: frozenset[str] | None, least: int, most: int
) -> tuple[str, ...]:
    """Survivors before those that wait, of each the wanted ones (None: all); others only to reach `least`.

    The first survivor has the latest state. It stays if nobody else is wanted who was a member: no state is lost.

    >>> choose_members(["a", "b"], ["c", "d"], frozenset("bd"), least=1, most=4)
    ('b', 'd')
    >>> choose_members(["a", "b"], ["c", "d"], frozenset("bd"), least=3, most=4)
    ('b', 'd', 'a')
    >>> choose_members(["a", "b"], ["c", "d"], frozenset("d"), least=1, most=4)
    ('a', 'd')
    """
    order = [*survivors, *waiting]
    chosen = [member for member in order if wanted is None or member in wanted]
    if survivors and not set(chosen) & set(survivors):
        chosen = [survivors[0], *chosen]
    if len(chosen) < least:
        others = [member for member in order if member not in chosen]
        chosen += others[: least - len(chosen)]
    return tuple(chosen[:most])


def make_generation(
    attempt: int, number: int, members: Sequence[str], ready: Mapping[str, Ready], checkpoint: int
) -> Generation:
    """The generation of `members`, in this order as far as the state allows: those that have it come first.

    >>> ready = {"a": Ready(7, "a:1"), "b": Ready(8, "b:1"), "c": Ready(NO_STATE, "c:1")}
    >>> made = make_generation(1, 2, ["a", "b", "c"], ready, checkpoint=0)
    >>> made.members, made.first_step, made.behind, made.store
    (('b', 'a', 'c'), 8, ('a', 'c'), 'b:1')
    """
    most = max(ready[member].steps for member in members)
    from_checkpoint = checkpoint > most or most == NO_STATE
    ahead = [] if from_checkpoint else [member for member in members if ready[member].steps == most]
    leaders = set(ahead)
    ranks = (*ahead, *(member for member in members if member not in leaders))
    return Generation(
        attempt=attempt,
        number=number,
        members=ranks,
        first_step=checkpoint if from_checkpoint else most,
        from_checkpoint=from_checkpoint,
        behind=ranks[max(len(ahead), 1) :],
        store=ready[ranks[0]].store,
    )
