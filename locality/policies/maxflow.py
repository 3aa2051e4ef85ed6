"""Move as few bytes as possible without ending later than the bound allows: the largest flow of local reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter

from locality.balance import check_blocks, check_capability, quickest_shares
from locality.bounds import rooms
from locality.local_reads import Holdings, most_local
from locality.parts import fill, plan_of
from locality.types import NO_TERMS, Block, Plan, Terms

SOON_DONE_PAIRS = 100_000
"""Up to so many replicas a second flow tells whether nothing has to move even without epsilon, which takes little."""


def plan(blocks: Sequence[Block], capability: Mapping[str, float], terms: Terms = NO_TERMS) -> Plan:
    """Divide `blocks` with the fewest bytes moved of all plans that end within 1 + `terms.epsilon` of the bound.

    Node i may get room_i = (1 + epsilon) * C_i / sum(C) of all items, and less if it begins later: see `rooms`. The
    flow source -> block -> replicas -> node, with room_i out of node i, is what can be read locally; the rest is read
    by nodes below their share. Where no plan of whole items ends so early, the earliest counts as the bound. PlanError
    names an unusable block, capability or epsilon.
    """
    check_blocks(blocks)
    check_capability(capability)
    items = sum(map(attrgetter("items"), blocks))
    shares = quickest_shares(items, capability, terms.starts)
    room = rooms(items, capability, terms.epsilon, terms.starts, shares)
    holdings = Holdings.of(blocks, (node for node, value in capability.items() if value > 0))
    local = most_local(holdings, holdings.of_each_node(room))
    if not local.fewest_bytes_moved and len(holdings.block) <= SOON_DONE_PAIRS:
        exact = most_local(holdings, holdings.of_each_node(shares))
        local = local if exact.fewest_bytes_moved else exact
    return plan_of(holdings, fill(holdings, local.local_items, holdings.of_each_node(shares)), list(capability))
