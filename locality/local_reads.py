"""How many pictures can be read where they lie, if every node reads only so many: augmenting paths."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from itertools import pairwise

Homes = frozenset[str]


class LocalReads:
    """Pictures given to nodes that hold them; what was once accepted stays accepted, but may change nodes."""

    def __init__(self, room: Mapping[str, int]) -> None:
        """`room`: pictures that each node may still read."""
        self._room = dict(room)
        self._reads: dict[str, Counter[Homes]] = {node: Counter() for node in room}
        # from node -> to node -> the homes of pictures that could be handed over; a dict for its fixed order
        self._links: dict[str, dict[str, dict[Homes, None]]] = {node: {} for node in room}
        # No path leaves this set of full nodes, and none ever will, so the search need not enter it again.
        self._closed: set[str] = set()

    def add(self, homes: Homes, images: int) -> int:
        """Accept up to `images` pictures that lie on `homes`; returns how many found room."""
        left = images
        while left:
            path = self._path_to_room(homes)
            if not path:
                break
            left -= self._push(homes, path, left)
        return images - left

    def _path_to_room(self, homes: Iterable[str]) -> list[str]:
        came_from: dict[str, str | None] = dict.fromkeys(
            sorted(node for node in homes if node in self._room and node not in self._closed)
        )
        queue = deque(came_from)
        while queue:
            node = queue.popleft()
            if self._room[node]:
                return _trace(came_from, node)
            for neighbour in self._links[node]:
                if neighbour not in came_from and neighbour not in self._closed:
                    came_from[neighbour] = node
                    queue.append(neighbour)
        self._closed.update(came_from)
        return []

    def _push(self, homes: Homes, path: list[str], wanted: int) -> int:
        handed = [(giver, taker, next(iter(self._links[giver][taker]))) for giver, taker in pairwise(path)]
        images = min(wanted, self._room[path[-1]], *(self._reads[giver][group] for giver, _, group in handed))
        for giver, taker, group in handed:
            self._change(giver, group, -images)
            self._change(taker, group, images)
        self._change(path[0], homes, images)
        self._room[path[-1]] -= images
        return images

    def _change(self, node: str, homes: Homes, images: int) -> None:
        reads, links = self._reads[node], self._links[node]
        reads[homes] += images
        for other in homes:
            if other == node or other not in self._room:
                continue
            if reads[homes]:
                links.setdefault(other, {})[homes] = None
            elif homes in links.get(other, {}):
                del links[other][homes]
                if not links[other]:
                    del links[other]


def _trace(came_from: Mapping[str, str | None], node: str) -> list[str]:
    path = [node]
    while (before := came_from[path[-1]]) is not None:
        path.append(before)
    return path[::-1]
