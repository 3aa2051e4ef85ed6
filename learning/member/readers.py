"""Who reads which samples of a step: members that hold them first, where the data knows that, else one after another.

Rank 0 looks up where samples lie when a generation begins, and tells all. So all find the same, whenever HDFS moves a
replica.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from learning.errors import LearningError
from learning.state.framed import frame, unframe
from locality.training.local_readers import Holders, Places

Ask = Callable[[Sequence[int]], Iterable[Iterable[str]]]


class Readers:
    """Of `count` samples; `ask` tells the nodes that hold a replica of each, None where nobody knows."""

    def __init__(self, count: int, ask: Ask | None) -> None:
        self._count = count
        self._ask = ask
        self._places: Places | None = None
        self._holders: Holders | None = None

    @property
    def know_places(self) -> bool:
        """Whether it is known where samples lie."""
        return self._holders is not None

    def pack(self, members: Sequence[str], nodes: Mapping[str, str]) -> bytes:
        """What all members of a generation have to know, as its rank 0 does; nothing where it is of no use.

        Asking may take a while, so only the first generation does that.
        """
        if self._ask is None or not any(nodes.get(member) for member in members):
            return b""
        places = self._places
        if places is None:
            places = Places.collect(self._ask(range(self._count)))
        if len(places.of_sample) != self._count:
            raise LearningError(
                f"the data tells the places of {len(places.of_sample)} of {self._count} samples",
                "places_of must return as many as it is given numbers",
            )
        node_of = [nodes.get(member, "") for member in members]
        return frame({"places": places.nodes, "node_of": node_of}, [places.of_sample.tobytes()])

    def load(self, content: bytes | bytearray) -> None:
        """Go by what rank 0 has packed."""
        if not content:
            self._holders = None
            return
        head, rest = unframe(content)
        self._places = Places.read(head["places"], rest)
        self._holders = Holders.find(self._places, head["node_of"])

    def own(self, numbers: Any, shares: Sequence[int], rank: int) -> list[int]:
        """The samples of the member with this rank, of the array `numbers` of a step; `shares` are those of all ranks.

        In the order of the step, whoever reads them.
        """
        if self._holders is not None:
            chosen: list[int] = numbers[self._holders.choose_readers(numbers, shares) == rank].tolist()
            return chosen
        end = list(accumulate(shares))[rank]
        consecutive: list[int] = numbers[end - shares[rank] : end].tolist()
        return consecutive

    def count_local(self, samples: Sequence[int], rank: int) -> int:
        """How many of these samples lie on the node of the member with this rank, as far as is known."""
        return self._holders.count_local(samples, rank) if self._holders is not None else 0
