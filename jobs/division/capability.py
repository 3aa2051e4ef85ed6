"""What each node can do, by the data name that a job was told to compare nodes by, and how far to trust that."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InvalidInput, NotFound
from infosvc.wire.records import Datum, Outcome, State
from jobs.errors import JobError

JSON = "json"
"""The unit of values that are objects."""


@dataclass(frozen=True)
class Capability(Datum):
    """A fresh value that is a number, and the confidence from 0 to 1 that stands beside it.

    The confidence of NAME is NAME.confidence on the same node, as long as that is fresh; None where it is missing,
    as with a name of your own: such a capability is trusted fully.
    """

    confidence: float | None = None


def wait(
    client: InfoClient,
    data_name: str,
    nodes: Sequence[str],
    seconds: float,
    waiting: Callable[[Sequence[str]], None] = lambda _: None,
) -> dict[str, Capability]:
    """The fresh value of every node; collectors and processors that have just been started get `seconds` to deliver.

    `waiting` hears which nodes are still missing, whenever these are others. JobError names those that have no fresh
    value in the end, and why, or a confidence that is not a number; InvalidInput a value that is not a number;
    InfoError: the service gives no answer.
    """
    deadline = time.monotonic() + seconds
    told: Sequence[str] = ()
    while True:
        found, missing = _look(client, data_name, nodes)
        if not missing:
            return _capabilities(found, _confidences(client, data_name, nodes))
        if time.monotonic() >= deadline:
            raise JobError(_refusal(data_name, missing))
        if told != (told := sorted(missing)):
            waiting(told)
        time.sleep(0.5)


def why_nothing_yet(client: InfoClient, data_name: str, nodes: Collection[str]) -> str:
    """What its producer says where it runs on all nodes and none of them has had a value; "" where any has one.

    JobError: nobody produces it. InfoError: the service gives no answer.
    """
    empty = {name: one for name, one in _values_by_node(client, data_name).items() if _is_empty(one)}
    reasons = [empty[node].reason or "no data" for node in nodes if node in empty]
    return min(reasons) if reasons and empty.keys() >= set(nodes) else ""


def is_fresh_number(datum: Datum) -> bool:
    """Whether it is a number, and young enough."""
    try:
        datum.number()
    except InvalidInput:
        return False
    return datum.state is State.FRESH


def _is_empty(datum: Datum) -> bool:
    return datum.data_value is None and datum.outcome is Outcome.NO_DATA


def _values_by_node(client: InfoClient, data_name: str) -> dict[str, Datum]:
    try:
        return {datum.node_name: datum for datum in client.data(data_name)}
    except NotFound as error:
        raise JobError(f"capability {data_name!r}: {error}") from error


def _look(client: InfoClient, data_name: str, nodes: Iterable[str]) -> tuple[dict[str, Datum], dict[str, str]]:
    """Fresh values by node, and for the other nodes what is wrong with theirs."""
    known = _values_by_node(client, data_name)
    found, missing = {}, {}
    for node in nodes:
        datum = known.get(node)
        if datum is None:
            missing[node] = "no value"
        elif datum.state is not State.FRESH:
            missing[node] = _flaw(datum)
        else:
            datum.number()
            found[node] = datum
    return found, missing


def _confidences(client: InfoClient, data_name: str, nodes: Iterable[str]) -> dict[str, float]:
    """By node, what is fresh beside the value."""
    try:
        known = {datum.node_name: datum for datum in client.data(f"{data_name}.confidence")}
    except NotFound:
        return {}
    return {node: _ratio(known[node]) for node in nodes if node in known and known[node].state is State.FRESH}


def _ratio(datum: Datum) -> float:
    ratio = datum.number()
    if not 0 <= ratio <= 1:
        raise JobError(f"{datum.data_name} on {datum.node_name} is {ratio:g}: a confidence lies between 0 and 1")
    return ratio


def _capabilities(found: Mapping[str, Datum], confidences: Mapping[str, float]) -> dict[str, Capability]:
    return {node: Capability(**vars(datum), confidence=confidences.get(node)) for node, datum in found.items()}


def _flaw(datum: Datum) -> str:
    age = "no value yet" if datum.age is None else f"{datum.age:.0f} s old"
    return f"{datum.state}, {age}" + (f", last run: {datum.reason}" if datum.reason else "")


def _refusal(data_name: str, missing: dict[str, str]) -> str:
    named = "; ".join(f"{node} ({flaw})" for node, flaw in sorted(missing.items()))
    return (
        f"no fresh {data_name} for {named}: `nodewise slot list` shows whether it is produced there, "
        "`nodewise job submit --capability NAME` judges by another value"
    )
