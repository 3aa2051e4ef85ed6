"""What nodewise must reach beside other ways, each a figure that follows from the readings of one or two pieces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.environments.asking import MAKE_AGAIN, REFUSAL
from bench.environments.pieces import BANDWIDTHS, tell_size
from bench.environments.ways import ALONE, LOAD, OURS, PLAIN, PULL, PULL_FROM_HDFS, TAR

Found = Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]
"""Readings by piece, way and phase."""
Sizes = Mapping[str, float]
"""Bytes to fetch, by way; tell_size names them."""
NOT_MEASURED = ("Debian's torch at 100 Mbit/s, on four nodes at once, and cached",)


class Missing(LookupError):
    """A reading that is not there."""


@dataclass(frozen=True)
class Goal:
    """`value` follows from the readings, or raises Missing; it must be at most `most`, or at least `least`."""

    piece: str
    text: str
    value: Callable[[Found, Sizes], float]
    most: float | None = None
    least: float | None = None

    def is_reached(self, value: float) -> bool:
        """Whether this value is one that must be."""
        return value <= self.most if self.most is not None else value >= (self.least or 0.0)

    @property
    def asked(self) -> str:
        """What must be, as `<= 1.5`."""
        return f"<= {self.most:g}" if self.most is not None else f">= {self.least:g}"


def middle(found: Found, piece: str, way: str, phase: str) -> float:
    """The median of some readings; Missing when there are none."""
    values = found.get(piece, {}).get(way, {}).get(phase)
    if not values:
        raise Missing(f"{piece}, {way}: {phase}")
    return median(values)


def _beyond_bandwidth(piece: str, megabits: int) -> Callable[[Found, Sizes], float]:
    def value(found: Found, sizes: Sizes) -> float:
        size = tell_size(piece, OURS.name)
        if size not in sizes:
            raise Missing("the size of the environment")
        return (middle(found, piece, OURS.name, "ready") - 1.0) / (sizes[size] * 8 / (megabits * 1e6))

    return value


def _times_ours(piece: str, way: str) -> Callable[[Found, Sizes], float]:
    return lambda found, _: middle(found, piece, way, "ready") / middle(found, piece, OURS.name, "ready")


def _of_one_node(megabits: int) -> Callable[[Found, Sizes], float]:
    def value(found: Found, _sizes: Sizes) -> float:
        four, one = (middle(found, f"{kind}-{megabits}", OURS.name, "ready") for kind in ("four", "cold"))
        return four / one

    return value


def _more_than_plain(found: Found, _sizes: Sizes) -> float:
    return middle(found, "cached", OURS.name, "ready") - middle(found, "cached", PLAIN.name, "ready")


def _of_plain(way: str) -> Callable[[Found, Sizes], float]:
    return lambda found, _: middle(found, "cached", way, "import") / middle(found, "cached", PLAIN.name, "import")


def _asked(question: str) -> Callable[[Found, Sizes], float]:
    return lambda found, _: middle(found, "asking", question, "ready")


def _of_others(piece: str, where: str, ways: Sequence[str]) -> list[Goal]:
    """Twice as soon as each of these ways, at each bandwidth."""
    return [
        Goal(
            f"{piece}-{megabits}",
            f"{way}, {where} at {megabits} Mbit/s: times ours",
            _times_ours(f"{piece}-{megabits}", way),
            least=2.0,
        )
        for megabits in BANDWIDTHS
        for way in ways
    ]


GOALS = (
    *(
        Goal(
            f"cold-{megabits}",
            f"ours, one node at {megabits} Mbit/s, 1 s taken away: times bytes / bandwidth",
            _beyond_bandwidth(f"cold-{megabits}", megabits),
            most=1.15,
        )
        for megabits in BANDWIDTHS
    ),
    *_of_others("cold", "one node", (TAR.name, LOAD.name, PULL.name, PULL_FROM_HDFS.name)),
    *(
        Goal(
            f"four-{megabits}",
            f"ours, four nodes at once at {megabits} Mbit/s: times one node",
            _of_one_node(megabits),
            most=1.3,
        )
        for megabits in BANDWIDTHS
    ),
    *_of_others("four", "four nodes at once", (LOAD.name, PULL.name, PULL_FROM_HDFS.name)),
    Goal("cached", "ours, cached: seconds until the first line beyond a plain folder", _more_than_plain, most=0.1),
    Goal("cached", "import from the mount of the node: times a plain folder", _of_plain(OURS.name), most=1.1),
    Goal("cached", "import from a fresh mount: times a plain folder", _of_plain(ALONE.name), most=1.5),
    Goal("asking", "env make with nothing changed: seconds", _asked(MAKE_AGAIN), most=2.0),
    Goal(
        "torch",
        "ours, Debian's torch on one node at 1000 Mbit/s, 1 s taken away: times bytes / bandwidth",
        _beyond_bandwidth("torch", 1000),
        most=1.15,
    ),
    *(
        Goal(
            "torch",
            f"{way}, Debian's torch on one node at 1000 Mbit/s: times ours",
            _times_ours("torch", way),
            least=2.0,
        )
        for way in (TAR.name, LOAD.name, PULL.name, PULL_FROM_HDFS.name)
    ),
    Goal("asking", "a task that no node can run is refused: seconds", _asked(REFUSAL), most=0.05),
)
