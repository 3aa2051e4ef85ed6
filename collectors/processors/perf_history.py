"""Capability by experience: perf_history.py DATA_NAME

    C_i = moving average of node i's speeds in past jobs, as locality.capability defines it, in images per second

Jobs write speeds under DATA_NAME; a former name counts, too. A node that ran nothing is judged by its perf_cpu on the
scale of those that did; without one, or while none did: exit 3. Beside it: .confidence (0 to 1), .count, .spread, and
.measure: the node's perf_cpu, by which a job of another program judges a node that is new to it.
"""

from __future__ import annotations

import sys

from collectors.past_speeds import MEASURE, measures, past_jobs, past_speeds
from collectors.run import NO_DATA, answer, await_fresh, fresh, node_name, service
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError, NotFound
from locality.capability import Estimate, Sample, from_jobs, guess

PATIENCE_SECONDS = 10.0  # for the measure: it comes some seconds after a new node's first run; the next is far away


def estimate(client: InfoClient, data_name: str, node: str) -> Estimate | None:
    """A node by its own jobs, else by those of others; ValueError when a recorded speed is not a number."""
    past = past_speeds(client, data_name, node)
    return from_jobs(past_jobs(past)) or _without_history(client, list(past), node)


def _without_history(client: InfoClient, names: list[str], node: str) -> Estimate | None:
    speeds = {at: datum for name in names for at, datum in fresh(client.data(name)).items()}
    if node in speeds:  # a name that keeps nothing: the last job is all there is
        return from_jobs([Sample(speeds[node].age or 0.0, speeds[node].number())])
    if not speeds or not await_fresh(client, MEASURE, node, PATIENCE_SECONDS):
        return None  # else all new nodes would ask for the measures of all nodes, for nothing
    return guess(node, {at: datum.number() for at, datum in speeds.items()}, measures(client))


def main() -> int:
    """Work out the capability of this node and print it."""
    if len(sys.argv) != 2:
        raise ValueError("give the data name of the recorded speeds, for example: images_per_second:mxnet.alexnet:32")
    client, node = service(), node_name()
    found = estimate(client, sys.argv[1], node)
    if found is None:
        print(f"no job has run here yet, and {MEASURE} is missing here or where one has run", file=sys.stderr)
        return NO_DATA
    beside = {"confidence": found.confidence, "count": found.count, "spread": found.spread}
    print(answer(f"{found.value:g}", **beside, measure=measures(client, node).get(node)))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (ValueError, InfoError) as error:
        print(f"perf_history: {error}", file=sys.stderr)
        sys.exit(NO_DATA if isinstance(error, NotFound) else 1)
