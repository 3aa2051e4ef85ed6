"""Who is left out when members do not reach each other, although all of them reach whoever leads the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence


def choose_cut_off(
    complaints: Mapping[str, Collection[str]], members: Sequence[str], silent: Collection[str]
) -> tuple[str, str] | None:
    """Who goes, and one that it does not reach; None where all members reach each other.

    `complaints` name those that a member does not reach. One of the two is enough, as a network that is cut one way is
    of no use either. Who is `silent` goes first, then who reaches the fewest others, then who has the highest rank.

    >>> choose_cut_off({"a": ["b"], "b": ["a", "c"]}, ["a", "b", "c"], silent=())
    ('b', 'a')
    >>> choose_cut_off({"b": ["a"]}, ["a", "b", "c"], silent=())
    ('b', 'a')
    >>> choose_cut_off({"b": ["a"]}, ["a", "b", "c"], silent=["a"])
    ('a', 'b')
    """
    ranks = {member: rank for rank, member in enumerate(members)}
    pairs = {
        frozenset((one, other))
        for one, others in complaints.items()
        for other in others
        if one != other and one in ranks and other in ranks
    }
    if not pairs:
        return None
    lacking = Counter(member for pair in pairs for member in pair)
    gone = max(lacking, key=lambda member: (member in silent, lacking[member], ranks[member]))
    return gone, min((one for pair in pairs if gone in pair for one in pair - {gone}), key=ranks.__getitem__)
