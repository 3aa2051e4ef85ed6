"""Which member reads which samples of a step, found by every member for itself: own replicas first, shares kept.

    maximise  the samples that lie on the node of who reads them    subject to  b_i samples for member i

Samples with replicas on the same members are one class, and there are few of these. Whole classes are given to their
holders as far as shares go; then a path of exchanges that lets one more sample be read locally is looked for until
there is none, which is when the most are local (Ford and Fulkerson 1956). `local_first.assign` finds as many by
OR-tools, which members do not have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from locality.types import PlanError

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Places:
    """Of all samples: `nodes` has sets of nodes with replicas, `of_sample` the number of the set of each sample."""

    nodes: Sequence[tuple[str, ...]]
    of_sample: NDArray[np.uint32]

    @classmethod
    def collect(cls, places: Iterable[Iterable[str]]) -> Places:
        """From the nodes of each sample.

        >>> Places.collect([("n1", "n2"), (), ("n1", "n2")]).nodes
        [('n1', 'n2'), ()]
        """
        known: dict[tuple[str, ...], int] = {}
        found = [known.setdefault(nodes, len(known)) for nodes in map(tuple, places)]
        return cls(list(known), np.array(found, np.uint32))

    @classmethod
    def read(cls, nodes: Sequence[Sequence[str]], of_sample: bytes | memoryview) -> Places:
        """From what stands in another's `nodes` and in the bytes of its `of_sample`."""
        return cls([tuple(one) for one in nodes], np.frombuffer(of_sample, np.uint32))

    @property
    def are_known(self) -> bool:
        """Whether there is a sample of which a node is known."""
        return any(self.nodes)


@dataclass(frozen=True)
class Holders:
    """Of all samples: `classes` are the ranks of members that hold them, `of_sample` is the class of each sample."""

    classes: Sequence[tuple[int, ...]]
    of_sample: NDArray[np.uint32]

    @classmethod
    def find(cls, places: Places, node_of: Sequence[str]) -> Holders:
        """Among members, whose nodes stand in `node_of` by rank, empty where not known.

        >>> Holders.find(Places.collect([("n1", "n2"), ("n9",), ("n2", "n1")]), ["n1", "n2", ""]).classes
        [(0, 1), ()]
        """
        ranks: dict[str, list[int]] = {}
        for rank, node in enumerate(node_of):
            if node:
                ranks.setdefault(node, []).append(rank)
        classes: dict[tuple[int, ...], int] = {}
        of_set = []
        for nodes in places.nodes:
            held = tuple(sorted({rank for node in nodes for rank in ranks.get(node, ())}))
            of_set.append(classes.setdefault(held, len(classes)))
        return cls(list(classes), np.array(of_set, np.uint32)[places.of_sample])

    def choose_readers(self, samples: Ints, shares: Sequence[int]) -> Ints:
        """The rank that reads each of these samples; PlanError unless the shares of all ranks add up to them."""
        if sum(shares) != len(samples):
            raise PlanError(f"the shares add up to {sum(shares)}, but the batch has {len(samples)} samples")
        present, which, counts = np.unique(self.of_sample[samples], return_inverse=True, return_counts=True)
        given = _Given([self.classes[one] for one in present.tolist()], counts.tolist(), shares)
        given.fill()
        given.improve()
        readers = np.full(len(samples), -1, np.int64)
        for one, by_rank in enumerate(given.of_class):
            at = np.flatnonzero(which == one)
            chosen = [rank for rank in sorted(by_rank) for _ in range(by_rank[rank])]
            readers[at[: len(chosen)]] = chosen
        readers[readers < 0] = np.repeat(np.arange(len(shares)), given.free)
        return readers

    def count_local(self, samples: Sequence[int], rank: int) -> int:
        """How many of these samples the member of this rank holds."""
        return sum(rank in self.classes[one] for one in self.of_sample[list(samples)].tolist())


class _Given:
    """How many samples of each class each holder reads: `free` is what is left of shares, `left` of classes."""

    def __init__(self, holders: Sequence[tuple[int, ...]], counts: Sequence[int], shares: Sequence[int]) -> None:
        self._holders = holders
        self.left = list(counts)
        self.free = list(shares)
        self.of_class: list[dict[int, int]] = [{} for _ in holders]
        self._read_by: list[set[int]] = [set() for _ in shares]
        self._full: set[int] = set()

    def fill(self) -> None:
        """Give to holders with the largest share left, classes with few holders first."""
        for one in sorted(range(len(self.left)), key=lambda one: (len(self._holders[one]), one)):
            for rank in sorted(self._holders[one], key=lambda rank: (-self.free[rank], rank)):
                self._give(one, rank, min(self.left[one], self.free[rank]))

    def improve(self) -> None:
        """As long as something can be exchanged."""
        for one in range(len(self.left)):
            while self.left[one] and self._improve(one):
                pass

    def _give(self, one: int, rank: int, count: int) -> None:
        self.left[one] -= count
        self.free[rank] -= count
        self.of_class[one][rank] = self.of_class[one].get(rank, 0) + count
        if self.of_class[one][rank]:
            self._read_by[rank].add(one)
        else:
            self._read_by[rank].discard(one)

    def _improve(self, begin: int) -> bool:
        """Whether more of class `begin` are local now.

        A path goes from a class to a holder of it, and from a holder without room to a class that it reads. Where no
        path from a holder ends at one with room, none ever will.
        """
        came_to_rank: dict[int, int] = {}
        came_to_class: dict[int, int] = {}
        todo = deque([begin])
        while todo:
            one = todo.popleft()
            for rank in self._holders[one]:
                if rank in came_to_rank or rank in self._full:
                    continue
                came_to_rank[rank] = one
                if self.free[rank]:
                    self._exchange(begin, rank, came_to_rank, came_to_class)
                    return True
                for other in sorted(self._read_by[rank]):
                    if other != begin and other not in came_to_class:
                        came_to_class[other] = rank
                        todo.append(other)
        self._full |= came_to_rank.keys()
        return False

    def _exchange(self, begin: int, end: int, came_to_rank: dict[int, int], came_to_class: dict[int, int]) -> None:
        """Move as many as the narrowest place of the path lets through."""
        steps, rank = [(came_to_rank[end], end)], end
        while (one := came_to_rank[rank]) != begin:
            rank = came_to_class[one]
            steps.append((came_to_rank[rank], rank))
        taken = [(one, came_to_class[one]) for one, _ in steps[:-1]]
        count = min(self.left[begin], self.free[end], *(self.of_class[one][rank] for one, rank in taken))
        for one, rank in taken:
            self._give(one, rank, -count)
        for one, rank in steps:
            self._give(one, rank, count)
