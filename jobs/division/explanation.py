"""Why each node got its share: a decision record in figures for programs and in sentences for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from jobs.division.columns import digest
from jobs.division.decision import Decision, Share
from jobs.division.explained import ExplainedNode, Explanation, Fetched, GivenAway, PlanQuality
from jobs.division.replay import Yardstick, attempts, comparison, yardstick
from jobs.errors import JobError
from jobs.reports.texts import bytes_text, count_text, over_optimum_text, ratio_text, singular
from locality.balance import earliest_end
from locality.bounds import rooms
from locality.explain import Move, Reason, moves
from locality.types import Part

MOST_TOLD = 5
"""So many of a node's moves are told in its sentence; --json has them all."""
REASONS = {
    Reason.NO_REPLICA: "that no live node holds",
    Reason.HOLDERS_IDLE: "whose holders get no work",
    Reason.HOLDERS_FULL: "whose holders have their shares",
    Reason.AVOIDABLE: "that a holder could have read",
}
"""What to say of items that move."""


def explanation(decision: Decision, only: str | None = None) -> Explanation:
    """The decision with, for each node or `only` one, its inputs, its share and why; JobError for an unknown node.

    Ages are seconds when the plan was made; `makespan` and `predicted` are in `makespan_unit`.
    """
    shares = {share.node_name: share for share in decision.shares()}
    if only is not None and only not in shares:
        raise JobError(f"{decision.job_id} was not planned with {only}: its nodes were {', '.join(shares)}")
    facts = _Facts(decision)
    return _whole(decision, tuple(facts.node(share) for name, share in shares.items() if only in (None, name)))


def heading(explained: Explanation) -> list[str]:
    """What was decided, by what, and how good that is."""
    quality = explained.quality
    return [
        f"{explained.job_id}: {explained.items} {explained.item_unit} of {explained.input}, divided by "
        f"{explained.policy}, judged by {explained.capability} at {explained.made_at}.",
        f"{explained.capability}: {explained.help or 'nobody has described it'} ({explained.kind}, "
        f"{explained.produced_by or 'written by programs'}).",
        f"Predicted makespan {explained.makespan:.1f}, lower bound {explained.lower_bound:.1f}, ratio "
        f"{ratio_text(explained.makespan_over_bound)}; in {explained.makespan_meaning}.",
        f"{bytes_text(quality.bytes_moved)} are moved; within {_percent(explained.epsilon)} of the bound the fewest "
        f"are {bytes_text(quality.bytes_moved_optimal)}, ratio "
        f"{over_optimum_text(quality.bytes_moved_over_optimal)}. {_percent(quality.locality_ratio)} of the "
        f"{explained.item_unit} stay where they are.",
    ]


def sentences(explained: Explanation) -> list[str]:
    """The reasons of each node."""
    return [f"{node.node_name}: {' '.join(node.why)}" for node in explained.nodes]


def _whole(decision: Decision, nodes: tuple[ExplainedNode, ...]) -> Explanation:
    readings = decision.readings
    predicted = comparison(decision, attempts(decision, [], {}))
    return Explanation(
        job_id=decision.job_id,
        made_at=decision.made_at,
        input=decision.input,
        policy=decision.policy,
        epsilon=decision.terms.epsilon,
        capability=decision.capability,
        unit=readings.unit,
        kind=readings.kind,
        produced_by=readings.produced_by,
        help=readings.help,
        items=decision.items,
        blocks=len(decision.blocks),
        block_digest=digest(decision.blocks),
        quality=PlanQuality(**vars(decision.quality)),
        makespan_unit=predicted["makespan_unit"],
        makespan_meaning=predicted["makespan_meaning"],
        **{key: predicted["plans"][0][key] for key in ("makespan", "lower_bound", "makespan_over_bound")},
        nodes=nodes,
        item_unit=decision.unit,
    )


class _Facts:
    """What the reasons of all nodes are made from, counted once."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        self.by: Yardstick = yardstick(decision, [decision.plan])
        self.values = decision.readings.numbers()
        self.starts = decision.terms.starts
        self.end = float(earliest_end(decision.items, self.values, self.starts))
        self.rooms = rooms(decision.items, self.values, decision.terms.epsilon, self.starts)
        self.held = dict.fromkeys(decision.plan.parts, 0)
        for block in decision.blocks:
            for node in self.held.keys() & set(block.replicas):
                self.held[node] += block.items
        self.fetched = {node: _Tally() for node in decision.plan.parts}
        self.given = {node: _Tally() for node in decision.plan.parts}
        for move in moves(decision.plan, self.values, self.starts):
            self.fetched[move.node].add(_why(move), move.part)
            for holder in self.given.keys() & set(move.part.block.replicas):
                self.given[holder].add(move.node, move.part)

    def node(self, share: Share) -> ExplainedNode:
        """One node, in figures and sentences."""
        name = share.node_name
        node = ExplainedNode(
            **vars(share),
            **vars(self.decision.readings.nodes[name]),
            most_items=self.rooms[name],
            held_items=self.held[name],
            fetched=tuple(Fetched(*counted) for counted in self.fetched[name].largest()),
            given_away=tuple(GivenAway(*counted) for counted in self.given[name].largest()),
            start_seconds=self.decision.start_seconds.get(name, 0.0),
            predicted=self.by.ends(name, share.items) if share.items and self.by.speeds.get(name) else None,
            why=(),
        )
        return replace(node, why=(self._value_text(node), *self._gets(node), *self._reads(node)))

    def _value_text(self, node: ExplainedNode) -> str:
        """Value, age, confidence, and the formula with its numbers in it."""
        capability = self.decision.capability
        unit = f" {self.decision.readings.unit}" if self.decision.readings.unit else ""
        trust = "nothing tells its confidence" if node.confidence is None else f"confidence {node.confidence:.2f}"
        return (
            f"its {capability} was {node.value:.4g}{unit}, {node.age_seconds:.0f} s old and {node.state}, "
            f"{trust}. {self._start_text(node)}That makes {self._formula_text(node)} "
            f"{self.decision.unit} by the formula, rounded to {node.target_items}."
        )

    def _start_text(self, node: ExplainedNode) -> str:
        """How long it takes until it begins, and when all is done, as far as that makes a difference."""
        begins = f"It needs about {node.start_seconds:.2g} s before it begins" if node.start_seconds else ""
        if not self.starts:
            why_not = "which does not count, as no speed of earlier jobs tells how long the work takes"
            return f"{begins}, {why_not}. " if begins else ""
        start, counted = self.starts.get(node.node_name, 0.0), f"{self.decision.unit} / {self.decision.capability}"
        when = f"In {counted}, it begins at {start:.4g}, and all can be done at {self.end:.4g}. "
        return f"{begins}. {when}" if begins else when

    def _formula_text(self, node: ExplainedNode) -> str:
        """The formula with its numbers; if all begin at once, it is that of the paper."""
        items, total = self.decision.items, sum(self.values.values())
        if not self.starts:
            return f"{items} * {node.value:.4g} / {total:.4g} = {items * (node.value / total):.1f}"
        start = min(self.end, self.starts.get(node.node_name, 0.0))
        return f"{node.value:.4g} * ({self.end:.4g} - {start:.4g}) = {node.value * (self.end - start):.1f}"

    def _gets(self, node: ExplainedNode) -> list[str]:
        items, policy, epsilon = node.items, self.decision.policy, self.decision.terms.epsilon
        unit = self.decision.unit
        if items == node.target_items > 0:
            return [f"It gets these {items}."]
        if items:
            return [
                f"It gets {items}: {policy} does not follow the formula. With up to "
                f"{count_text(node.most_items, unit)} it ends within {_percent(epsilon)} of the bound."
            ]
        if node.value == 0:
            return ["It gets none, because a node whose capability is 0 gets no work."]
        if self.starts.get(node.node_name, 0.0) >= self.end > 0:
            return ["It gets none, because all can be done before it begins."]
        if node.target_items == 0:
            return [f"It gets none, because its share is too small for a whole {singular(unit)}."]
        return [f"It gets none, because {policy} gives all {unit} to other nodes; it holds {node.held_items}."]

    def _reads(self, node: ExplainedNode) -> list[str]:
        """Where it reads them, and who reads of what it holds without holding it."""
        held, local, unit = node.held_items, node.local_items, self.decision.unit
        reads = f"reads {local} of them from its own disk" if node.items else "reads none of them"
        fetched = [f"{count_text(move.items, unit)} {move.why}" for move in node.fetched]
        given = [f"{move.items} by {move.to}" for move in node.given_away]
        return [
            f"It holds {count_text(held, unit)} and {reads}.",
            *([f"It fetches {_join_some(fetched)}."] if fetched else []),
            *([f"Of what it holds, nodes that do not hold it read: {_join_some(given)}."] if given else []),
        ]


class _Tally:
    """Items and bytes by what they have in common."""

    def __init__(self) -> None:
        self._items: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    def add(self, key: str, part: Part) -> None:
        self._items[key] += part.items
        self._bytes[key] += round(part.size_bytes)

    def largest(self) -> list[tuple[str, int, int]]:
        """What they have in common, how many items and how many bytes, the most items first."""
        return [(key, items, self._bytes[key]) for key, items in self._items.most_common()]


def _why(move: Move) -> str:
    """The reason, then the numbers of those who hold it, as far as there is one."""
    return f"{REASONS[move.reason]}: {move.text}" if move.part.block.replicas else REASONS[move.reason]


def _join_some(texts: Sequence[str]) -> str:
    more = len(texts) - MOST_TOLD
    return "; ".join(texts[:MOST_TOLD]) + (f"; and {more} more in --json" if more > 0 else "")


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.3g} %"
