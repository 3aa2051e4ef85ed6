"""What happened to the members of a run: as sentences, and as the report has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from learning.lead.calls import Doing, Done
from learning.lead.leader import Member
from locality.training.generation_events import (
    Began,
    Checkpointed,
    EndAnnounced,
    Event,
    Finished,
    Generation,
    Lost,
    StopAsked,
)

LEFT_EARLY = "let its loop over the run come to its end, or ask for fewer epochs; a failure needs another exit status"
"""The remedy for `left_early`."""


def sentence(event: Event) -> str:
    """For people; empty for what they need not know.

    >>> sentence(Generation(1, 2, ("a", "b"), 40, False, (), ""))
    'generation 2 computes from step 40 on: a, b'
    """
    match event:
        case Generation():
            return computes(
                event.number, event.first_step, event.members, is_resumed=event.from_checkpoint and event.first_step > 0
            )
        case EndAnnounced():
            return f"generation {event.number} ends: {event.reason}"
        case Lost():
            return f"{event.member} takes part no more: {event.reason}"
        case Checkpointed():
            return f"the state after {event.steps:,} steps is stored"
        case Finished(is_stopped=True):
            return f"the run is stopped after {event.steps:,} steps"
        case Finished():
            return f"all {event.steps:,} steps are done"
        case StopAsked():
            return "the run stops after the step that is computed"
        case Began():
            return f"attempt {event.attempt} leads the run" if event.attempt > 1 else ""


def computes(number: int, first_step: int, members: Sequence[str], *, is_resumed: bool) -> str:
    """Who computes from a step on.

    >>> computes(2, 40, ["a", "b"], is_resumed=True)
    'generation 2 computes from step 40 on, from a checkpoint: a, b'
    """
    where = ", from a checkpoint" if is_resumed else ""
    return f"generation {number} computes from step {first_step:,} on{where}: {', '.join(members)}"


def left_early(who: str, member: Member | None) -> str:
    """A sentence when a program has ended with exit status 0 after its member took leave; else empty.

    >>> left_early("the program", Member(Doing.FAILED, said="the loop was left after step 3 of 64"))
    'the program ended with exit status 0 before the run was done: the loop was left after step 3 of 64'
    """
    if member is None or member.doing is not Doing.FAILED:
        return ""
    return f"{who} ended with exit status 0 before the run was done: {member.said}"


@dataclass(frozen=True)
class Happened:
    """An event, and the second of the run at which it was decided."""

    at: float
    event: Event


class History:
    """All events of a run, in whichever attempts; `nodes` are those of its containers, and grow with them."""

    def __init__(self, nodes: Mapping[str, str]) -> None:
        self._nodes = nodes
        self._all: list[Happened] = []
        self._lost_at: dict[str, float] = {}

    def note(self, at: float, event: Event) -> None:
        """By any thread; one after the other."""
        self._all.append(Happened(at, event))
        if isinstance(event, Lost):
            self._lost_at[event.member] = at

    def lost_at(self, member: str) -> float | None:
        """The second at which it was lost, None if it was not."""
        return self._lost_at.get(member)

    @property
    def last_members(self) -> frozenset[str]:
        """Of the newest generation."""
        made = [one.event for one in self._all if isinstance(one.event, Generation)]
        return frozenset(made[-1].members) if made else frozenset()

    def news(self, most: int, also: Iterable[tuple[float, str]] = ()) -> list[str]:
        """The last sentences; `also` are others, each with its second of the run."""
        told = [(one.at, said) for one in self._all[-2 * most :] if (said := sentence(one.event))]
        told = sorted([*told, *also], key=lambda one: one[0])
        return [f"{at:.0f} s: {self.with_nodes(said)}" for at, said in told[-most:]]

    def report(self) -> dict[str, Any]:
        """The generations, and what each loss of a member has cost."""
        return {"generations": self._generations(), "losses": self._losses()}

    def _generations(self) -> list[dict[str, Any]]:
        """Each from the second at which it was made; `ended` is why it did, "" as long as it goes on."""
        ends = self._ends()
        return [
            {
                "number": one.event.number,
                "at_seconds": round(one.at, 3),
                "first_step": one.event.first_step,
                "from_checkpoint": one.event.from_checkpoint and one.event.first_step > 0,
                "nodes": [self._node_of(member) for member in one.event.members],
                "ended": ends.get(one.event.number, ""),
            }
            for one in list(self._all)
            if isinstance(one.event, Generation)
        ]

    def _ends(self) -> dict[int, str]:
        """By the number of a generation, why it ended."""
        ends, number = dict[int, str](), 0
        for one in list(self._all):
            match one.event:
                case Generation():
                    number = one.event.number
                case EndAnnounced():
                    ends[one.event.number] = self.with_nodes(one.event.reason)
                case Finished():
                    ends[number] = sentence(one.event)
        return ends

    def _losses(self) -> list[dict[str, Any]]:
        """Of members of a generation; the cost is None when no generation followed."""
        told, members = [], frozenset[str]()
        for place, one in enumerate(list(self._all)):
            if isinstance(one.event, Generation):
                members = frozenset(one.event.members)
            if isinstance(one.event, Lost) and one.event.member in members:
                told.append(
                    {
                        "node": self._node_of(one.event.member),
                        "at_seconds": round(one.at, 3),
                        "why": one.event.reason,
                        "cost_seconds": self._cost(place),
                    }
                )
        return told

    def _cost(self, place: int) -> float | None:
        """From the loss until the next generation was made."""
        for later in self._all[place:]:
            if isinstance(later.event, Generation):
                return round(later.at - self._all[place].at, 3)
        return None

    def with_nodes(self, said: str) -> str:
        """With nodes in the place of containers."""
        for container_id, node in dict(self._nodes).items():
            said = said.replace(container_id, node)
        return said

    def _node_of(self, container_id: str) -> str:
        return self._nodes.get(container_id, container_id)


def by_node(work: Mapping[str, Done], nodes: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """What the members of each node have done, one after the other; `loss` is what the last of them knew."""
    found: dict[str, dict[str, Any]] = {}
    for name, done in sorted(work.items()):
        node = nodes.get(name, name)
        known = found.get(node, {})
        found[node] = {
            "samples": known.get("samples", 0) + done.samples,
            "reads": known.get("reads", 0) + done.reads,
            "local_reads": known.get("local_reads", 0) + done.local_reads,
            "compute_seconds": round(known.get("compute_seconds", 0.0) + done.compute_seconds, 3),
            "wait_seconds": round(known.get("wait_seconds", 0.0) + done.wait_seconds, 3),
            "loss": known.get("loss") if done.loss is None else done.loss,
        }
    return found


def last_loss(work: Iterable[Done]) -> float | None:
    """That of the last step; None before the first."""
    return max(((one.steps, one.loss) for one in work if one.loss is not None), default=(0, None))[1]
