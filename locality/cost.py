"""What it costs a node to read what another one holds: the access-cost matrix, seconds per byte (reader x holder).

    cost(i, i) = 1 / disk_i
    cost(i, j) = 1 / min(disk_j, network(i, j))        node i reads what node j holds

A disk that was not measured counts as the median of those that were. network(i, j) is what was measured for this pair;
a pair that was not measured is estimated from its two sides:

    network(i, j) = min(receive(i, r), send(j, r))     r: both in the same rack, or in two racks

receive(i, r) is the best rate at which i was ever seen to receive over r, send(j, r) the same for sending: what a probe
meets on its way can only slow it, so the best is nearest to what the side can do. Without one over r, it is

    1. the side's best over the other relation r', times median(r) / median(r') over all sides
    2. else median(r), else median(r') scaled likewise; a median that is missing leaves the assumed ratio
    3. else the assumed rate

Standard library only, because it also runs on nodes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from statistics import median
from typing import Any, NamedTuple

DEFAULT_RACK = "/default-rack"
"""Where Hadoop puts a node of which it knows no rack."""

ASSUMED_DISK_BYTES_PER_SECOND = 100e6
ASSUMED_NETWORK_BYTES_PER_SECOND = 100e6
ASSUMED_OTHER_RACK_RATIO = 0.5
"""What is left of the rate within a rack when the other node is in another one."""

SLOWEST_BYTES_PER_SECOND, FASTEST_BYTES_PER_SECOND = 1.0, 1e15
LONGEST_VALUE_BYTES = 65_535

_MEGA = 1e6


class CostError(ValueError):
    """What was measured makes no sense; the text names the value and what is allowed."""


class Basis(StrEnum):
    """How well something is known."""

    MEASURED = "measured"
    ESTIMATED = "estimated"
    ASSUMED = "assumed"


_DOUBT = {basis: doubt for doubt, basis in enumerate(Basis)}


@dataclass(frozen=True, slots=True)
class Rate:
    """Something measured: bytes per second, `age` seconds ago; CostError when either is absurd."""

    bytes_per_second: float
    age: float

    def __post_init__(self) -> None:
        if not SLOWEST_BYTES_PER_SECOND <= self.bytes_per_second <= FASTEST_BYTES_PER_SECOND:
            raise CostError(
                f"{self.bytes_per_second!r} is not a rate: bytes per second from {SLOWEST_BYTES_PER_SECOND:g} to "
                f"{FASTEST_BYTES_PER_SECOND:g}; leave out what was not measured"
            )
        if not 0 <= self.age < math.inf:
            raise CostError(f"{self.age!r} is not an age: seconds, 0 or more")


class Figure(NamedTuple):
    """A rate and how well it is known; `age` in seconds is that of the oldest thing in it, None for an assumption."""

    bytes_per_second: float
    basis: Basis
    age: float | None

    @property
    def seconds_per_byte(self) -> float:
        """The cost of one byte at this rate."""
        return 1 / self.bytes_per_second


class Side(NamedTuple):
    """One end of the way between two nodes: a node that sends or receives, within its rack or beyond."""

    node: str
    sends: bool
    same_rack: bool


@dataclass(frozen=True)
class AccessCost:
    """What was measured: rates of disks and of pairs (reader, holder), and the rack of each node.

    `sides` holds the best rate of ends whose pairs are not all among `pairs`. A node of which nothing is known is no
    error: it costs what is usual. CostError for a pair of a node with itself, and for a rack without a name.
    """

    disks: Mapping[str, Rate] = field(default_factory=dict)
    pairs: Mapping[tuple[str, str], Rate] = field(default_factory=dict)
    racks: Mapping[str, str] = field(default_factory=dict)
    sides: Mapping[Side, Rate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for reader, holder in self.pairs:
            if reader == holder:
                raise CostError(f"{reader} is paired with itself: what it reads from itself is its disk's rate")
        for node, rack in self.racks.items():
            if not rack:
                raise CostError(f"the rack of {node} has no name: leave it out, or name {DEFAULT_RACK}")

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all was measured, so that every cost is an assumption."""
        return not (self.disks or self.pairs or self.sides)

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """Every node that something is known of, by name."""
        named = {*self.disks, *self.racks, *(side.node for side in self.sides)}
        return tuple(sorted(named.union(*self.pairs)))

    def rack(self, node: str) -> str:
        """The rack of a node, DEFAULT_RACK where none is known."""
        return self.racks.get(node, DEFAULT_RACK)

    def seconds_per_byte(self, reader: str, holder: str) -> float:
        """Seconds that `reader` needs for a byte that lies on `holder`: what `entry` says, sooner."""
        if reader == holder:
            return self.disk(holder).seconds_per_byte
        pair = self.pairs.get((reader, holder))
        if pair is not None:
            return 1 / min(pair.bytes_per_second, self.disk(holder).bytes_per_second)
        same_rack = self.rack(reader) == self.rack(holder)
        return 1 / min(self._least_rate(reader, False, same_rack), self._least_rate(holder, True, same_rack))

    def entry(self, reader: str, holder: str) -> Figure:
        """The rate at which `reader` reads what lies on `holder`; it is only as certain as its least certain part."""
        disk = self.disk(holder)
        if reader == holder:
            return disk
        return _slower(disk, self.network(reader, holder))

    def disk(self, node: str) -> Figure:
        """The rate of a node's disk."""
        own = self.disks.get(node)
        return self._usual_disk if own is None else _measured_figure(own)

    def sending(self, holder: str, same_rack: bool) -> Figure:
        """The rate at which what lies on `holder` leaves it, whoever reads that."""
        return _slower(self.disk(holder), self.side(Side(holder, True, same_rack)))

    def network(self, reader: str, holder: str) -> Figure:
        """The rate of the way from `holder` to `reader`, disks left aside."""
        pair = self.pairs.get((reader, holder))
        if pair is not None:
            return _measured_figure(pair)
        same_rack = self.rack(reader) == self.rack(holder)
        return _slower(self.side(Side(reader, False, same_rack)), self.side(Side(holder, True, same_rack)))

    def side(self, side: Side) -> Figure:
        """The best that one end of a way can do; never `measured`, because only whole ways are."""
        found = self._known_figures.get(side)
        if found is None:
            found = self._known_figures[side] = self._judge(side)
        return found

    @cached_property
    def best(self) -> Mapping[Side, Rate]:
        """The best rate at which each end was seen to work."""
        best = dict(self.sides)
        for (reader, holder), rate in self.pairs.items():
            same_rack = self.rack(reader) == self.rack(holder)
            for side in (Side(reader, False, same_rack), Side(holder, True, same_rack)):
                if side not in best or rate.bytes_per_second > best[side].bytes_per_second:
                    best[side] = rate
        return best

    def to_json(self, most_bytes: int = LONGEST_VALUE_BYTES) -> str:
        """One line of JSON of at most `most_bytes`, from which `from_json` makes the same, rates to three digits.

        A full matrix of 1,000 nodes would take megabytes, so its rows are left to be computed again:

            {"units": ["MB/s", "s"], "racks": ["/r1", ...], "left_out": 0,
             "nodes": [[NAME, rack, disk, age, receive, send, age, receive, send, age], ...],
             "pairs": [[reader, holder, rate, age], ...]}

        Racks and nodes are named by their places; of the two groups receive, send, age the first is within the rack,
        the second beyond. What is unknown, a rack too, is null, or missing at the end. Pairs are the newest, as many
        as fit; the nodes that do not fit are counted by `left_out`. The best rates of all ends are there even so.
        """
        room = most_bytes - len(_to_text(_body([], [], [], len(self.nodes))))
        racks, rows, room = _rows(self, room)
        places = {row[0]: place for place, row in enumerate(rows)}
        pairs = _fitting(_pair_rows(self.pairs, places), room)
        return _to_text(_body(racks, rows, list(pairs), len(self.nodes) - len(rows)))

    @classmethod
    def from_json(cls, text: str, age: float = 0.0) -> AccessCost:
        """What `to_json` wrote `age` seconds ago; CostError when the text is nothing of the kind."""
        try:
            body = json.loads(text)
            return _from_body(body, age)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise CostError(f"this is not an access cost ({error}): {text[:60]!r}; collect it again") from error

    def _least_rate(self, node: str, sends: bool, same_rack: bool) -> float:
        """What an end of a way can do, its disk included if it sends."""
        key = node, sends, same_rack
        rate = self._known_rates.get(key)
        if rate is None:
            end = self.sending(node, same_rack) if sends else self.side(Side(node, False, same_rack))
            rate = self._known_rates[key] = end.bytes_per_second
        return rate

    @cached_property
    def _known_rates(self) -> dict[tuple[str, bool, bool], float]:
        """What was asked before: plans ask for the same ends hundreds of thousands of times."""
        return {}

    @cached_property
    def _known_figures(self) -> dict[Side, Figure]:
        """What was asked before: a matrix asks for every end again and again."""
        return {}

    @cached_property
    def _usual_disk(self) -> Figure:
        usual = _median(self.disks.values())
        return Figure(ASSUMED_DISK_BYTES_PER_SECOND, Basis.ASSUMED, None) if usual is None else _estimated_figure(usual)

    @cached_property
    def _usual_sides(self) -> dict[tuple[bool, bool], Rate]:
        found: dict[tuple[bool, bool], list[Rate]] = {}
        for side, rate in self.best.items():
            found.setdefault((side.sends, side.same_rack), []).append(rate)
        return {kind: usual for kind, rates in found.items() if (usual := _median(rates))}

    def _judge(self, side: Side) -> Figure:
        own, usual = self.best.get(side), self._usual_sides.get(side[1:])
        if own is not None:
            return _estimated_figure(own)
        other = side._replace(same_rack=not side.same_rack)
        own_other, usual_other = self.best.get(other), self._usual_sides.get(other[1:])
        if own_other is not None:
            return _scaled_figure(own_other, self._ratio(side))
        if usual is not None:
            return _estimated_figure(usual)
        if usual_other is not None:
            return _scaled_figure(usual_other, self._ratio(side))
        assumed = ASSUMED_NETWORK_BYTES_PER_SECOND * (1 if side.same_rack else ASSUMED_OTHER_RACK_RATIO)
        return Figure(assumed, Basis.ASSUMED, None)

    def _ratio(self, side: Side) -> float:
        """What a rate over the other relation is to be multiplied with."""
        here = self._usual_sides.get((side.sends, side.same_rack))
        there = self._usual_sides.get((side.sends, not side.same_rack))
        if here is not None and there is not None:
            return here.bytes_per_second / there.bytes_per_second
        # Within a rack things are no slower than beyond; how much quicker, nobody has seen.
        return 1.0 if side.same_rack else ASSUMED_OTHER_RACK_RATIO


def _measured_figure(rate: Rate) -> Figure:
    return Figure(rate.bytes_per_second, Basis.MEASURED, rate.age)


def _estimated_figure(rate: Rate) -> Figure:
    return Figure(rate.bytes_per_second, Basis.ESTIMATED, rate.age)


def _scaled_figure(rate: Rate, ratio: float) -> Figure:
    return Figure(rate.bytes_per_second * ratio, Basis.ESTIMATED, rate.age)


def _slower(one: Figure, other: Figure) -> Figure:
    """The lower rate, as well known as the worse known of the two, as old as the older."""
    rate = min(one.bytes_per_second, other.bytes_per_second)
    basis = one.basis if _DOUBT[one.basis] >= _DOUBT[other.basis] else other.basis
    ages = [age for age in (one.age, other.age) if age is not None]
    return Figure(rate, basis, max(ages, default=None))


def _median(rates: Iterable[Rate]) -> Rate | None:
    """The median rate, as old as the oldest; None of nothing."""
    found = list(rates)
    if not found:
        return None
    return Rate(median(rate.bytes_per_second for rate in found), max(rate.age for rate in found))


def _to_text(body: Mapping[str, Any]) -> str:
    return json.dumps(body, separators=(",", ":"))


def _body(racks: list[str], nodes: list[list[Any]], pairs: list[list[Any]], left_out: int) -> dict[str, Any]:
    return {"units": ["MB/s", "s"], "racks": racks, "left_out": left_out, "nodes": nodes, "pairs": pairs}


def _rows(cost: AccessCost, room: int) -> tuple[list[str], list[list[Any]], int]:
    """The racks of the first nodes that fit into so many bytes, in the order of their use; the nodes; the room left."""
    places: dict[str | None, int] = {}
    rows: list[list[Any]] = []
    for node in cost.nodes:
        rack = cost.racks.get(node)
        is_new = rack is not None and rack not in places
        row = _row(cost, node, len(places) if is_new else places.get(rack))
        taken = _length(row) + (_length(rack) if is_new else 0)
        if taken > room:
            break
        room -= taken
        rows.append(row)
        if is_new:
            places[rack] = len(places)
    return [rack for rack in places if rack is not None], rows, room


def _row(cost: AccessCost, node: str, rack: int | None) -> list[Any]:
    row: list[Any] = [node, rack, *_numbers(cost.disks.get(node))]
    for same_rack in (True, False):
        ends = [cost.best.get(Side(node, sends, same_rack)) for sends in (False, True)]
        ages = [end.age for end in ends if end is not None]
        row += [*(_numbers(end)[0] for end in ends), round(max(ages)) if ages else None]
    while row[-1] is None:
        row.pop()
    return row


def _pair_rows(pairs: Mapping[tuple[str, str], Rate], places: Mapping[str, int]) -> Iterator[list[Any]]:
    """Newest first."""
    for (reader, holder), rate in sorted(pairs.items(), key=lambda pair: (round(pair[1].age), pair[0])):
        if reader in places and holder in places:
            yield [places[reader], places[holder], *_numbers(rate)]


def _numbers(rate: Rate | None) -> tuple[float | None, int | None]:
    """Megabytes per second, to three digits, and age in whole seconds."""
    if rate is None:
        return None, None
    shown = float(f"{rate.bytes_per_second / _MEGA:.3g}")
    return int(shown) if shown.is_integer() else shown, round(rate.age)


def _fitting(rows: Iterable[list[Any]], room: int) -> Iterator[list[Any]]:
    """The first rows that fit into so many bytes."""
    for row in rows:
        room -= _length(row)
        if room < 0:
            return
        yield row


def _length(item: list[Any] | str | None) -> int:
    return len(_to_text({"": item})) - len('{"":}') + len(",")


def _from_body(body: Any, age: float) -> AccessCost:
    rows = [[str(row[0]), *row[1:], *[None] * (10 - len(row))] for row in body["nodes"]]
    names = dict(enumerate(row[0] for row in rows))
    racks = dict(enumerate(str(rack) for rack in body["racks"]))
    ends = ((4, False, True, 6), (5, True, True, 6), (7, False, False, 9), (8, True, False, 9))
    return AccessCost(
        disks={row[0]: _rate(row[2], row[3], age) for row in rows if row[2] is not None},
        pairs={(names[i], names[j]): _rate(rate, then, age) for i, j, rate, then in body["pairs"]},
        racks={row[0]: racks[row[1]] for row in rows if row[1] is not None},
        sides={
            Side(row[0], sends, same_rack): _rate(row[at], row[then], age)
            for row in rows
            for at, sends, same_rack, then in ends
            if row[at] is not None
        },
    )


def _rate(megabytes_per_second: float, age: float, since: float) -> Rate:
    return Rate(megabytes_per_second * _MEGA, age + since)
