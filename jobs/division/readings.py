"""What one job compares nodes by: a capability as it stands, or the speeds of the job's own program.

A capability that is made from recorded speeds, as the inputs of its producer tell, says nothing of other programs and
batches. A job of another one takes the speeds that each node had with the job's own program, and of a node that has
not run it, its measure on the scale of those that have. The measure of NAME is NAME.measure on the same node.

A capability that comes with a first job has no value before it, nor has its measure: a producer that has no data brings
neither. Then no node can be put on the scale of others, and `why_cold` says why another data name has to decide.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound
from infosvc.wire.records import Datum, Producer
from jobs.division import speed_history
from jobs.division.capability import is_fresh_number, wait, why_nothing_yet
from jobs.division.decision import CapabilityReadings, Reading
from locality.capability import GUESS_CONFIDENCE, Estimate, from_jobs, guess, middle
from locality.program_names import program_of, speed_name

MEASURE = ".measure"
"""What follows a data name in the name of what a node is compared by as long as it has run nothing."""
RECORDED = "recorded"
"""The kind of readings that were made from the speeds of the job's own program."""
GUESSED = "guessed"
"""The state of a reading of a node that has not run the program."""


@dataclass(frozen=True)
class Program:
    """What a job runs, and on how many items at once."""

    name: str
    batch: int

    @property
    def speeds(self) -> str:
        """The data name of its recorded speeds."""
        return speed_name(self.name, self.batch)

    def __str__(self) -> str:
        return f"{self.name} in batches of {self.batch}"


def read_capability(
    client: InfoClient,
    capability: str,
    program: Program,
    nodes: Sequence[str],
    seconds: float,
    waiting: Callable[[Sequence[str]], None] = lambda _: None,
) -> CapabilityReadings:
    """The readings that a job divides by; errors, `seconds` and `waiting` are those of `capability.wait`.

    As long as no node has run the program, the capability itself has to be there, as for any other job.
    """
    others = _other_programs(client, capability, program)
    speeds = speed_history.last_speeds(client, program.name, program.batch) if others else {}
    seen = {node: speeds[node] for node in nodes if node in speeds}
    if not seen:
        values = wait(client, capability, nodes, seconds, waiting)
        if not others:
            return readings_of(
                client.producer(capability), {node: reading(one, one.confidence) for node, one in values.items()}
            )
    measures = _measures(client, capability + MEASURE)
    new = [node for node in nodes if node not in seen]
    why = f"{capability} tells only of {' and '.join(map(str, others))}: {_sentence(program, seen, new, measures)}"
    found = _readings_of_jobs(client, program, seen) | _guesses(new, seen, measures)
    unit = next(iter(seen.values())).unit if seen else ""
    return CapabilityReadings(unit, RECORDED, program.speeds, why, {node: found[node] for node in nodes})


def why_cold(client: InfoClient, capability: str, program: Program, nodes: Sequence[str]) -> str:
    """Why no node has a value of the capability; "" where one has, or where speeds of the program may give one.

    JobError: nobody produces it. InfoError: the service gives no answer.
    """
    if speed_history.recorded_speeds(client, program.name, program.batch):
        return ""
    return why_nothing_yet(client, capability, nodes)


def reading(datum: Datum, confidence: float | None) -> Reading:
    """A value as a decision keeps it."""
    return Reading(datum.number(), float(datum.age or 0.0), datum.state.value, confidence)


def readings_of(producer: Producer, readings: Mapping[str, Reading]) -> CapabilityReadings:
    """The readings of what a producer brings."""
    return CapabilityReadings(producer.unit, producer.kind.value, producer.cmd, producer.help, readings)


def _other_programs(client: InfoClient, capability: str, program: Program) -> list[Program]:
    """Of whose speeds a capability is made; none if the program is one of them, or if it is made of no speeds."""
    try:
        inputs = client.producer(capability).inputs
    except NotFound:  # `wait` says so
        return []
    found = [Program(*of) for of in map(program_of, inputs) if of]
    return [] if program.speeds in [one.speeds for one in found] else found


def _measures(client: InfoClient, data_name: str) -> dict[str, float]:
    """By node, what is fresh and can be a measure; a name that is not registered has none."""
    try:
        known = client.data(data_name)
    except NotFound:
        return {}
    return {datum.node_name: datum.number() for datum in known if is_fresh_number(datum) and datum.number() >= 0}


def _readings_of_jobs(client: InfoClient, program: Program, seen: Mapping[str, Datum]) -> dict[str, Reading]:
    """The nodes that have run the program, by their speeds."""
    found = {}
    for node, newest in seen.items():
        past = speed_history.past_jobs(client, program.name, program.batch, node)
        own = from_jobs(past) or Estimate(newest.number(), GUESS_CONFIDENCE, count=1)  # of a name that keeps nothing
        found[node] = Reading(own.value, float(newest.age or 0.0), newest.state.value, own.confidence)
    return found


def _guesses(new: Collection[str], seen: Mapping[str, Datum], measures: Mapping[str, float]) -> dict[str, Reading]:
    """The nodes that have not: as their measures say where that can be, else as the middle of the others."""
    if seen:
        speeds = {node: datum.number() for node, datum in seen.items()}
        found = {node: guess(node, speeds, measures) or middle(speeds.values()) for node in new}
    elif measures.keys() >= set(new):
        found = {node: Estimate(measures[node], 0.0) for node in new}
    else:
        found = {node: Estimate(1.0, 0.0) for node in new}
    return {node: Reading(one.value, 0.0, GUESSED, one.confidence) for node, one in found.items()}


def _sentence(program: Program, seen: Collection[str], new: Sequence[str], measures: Collection[str]) -> str:
    """What the user should know of the nodes."""
    if not seen:
        by = "judged without experience of it" if set(measures) >= set(new) else "taken for alike"
        return f"no node has run {program} yet, so nodes are {by}"
    text = f"nodes are judged by the speeds that they had with {program}"
    return f"{text}; new to it, and guessed by the others: {', '.join(new)}" if new else text
