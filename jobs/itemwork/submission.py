"""What cannot work of a job that divides items, and which capability decides, found out before it is submitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from hadoop.client.filesystem import FileSystem
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError
from jobs.division.readings import RECORDED, Program, read_capability, why_cold
from jobs.errors import JobError
from jobs.itemwork.settings import ItemSettings
from locality.policies import policy

S = TypeVar("S", bound=ItemSettings)


def check_policies(settings: ItemSettings) -> None:
    """PlanError where there is no policy of a name."""
    policy(settings.policy)
    if settings.fallback:
        policy(settings.fallback)


def check_paths(filesystem: FileSystem, settings: ItemSettings, remedy: str) -> None:
    """JobError unless the input is there, with this remedy, and the output is not."""
    if not filesystem.exists(settings.input):
        raise JobError(f"{settings.input} is not in HDFS", remedy=remedy)
    if filesystem.exists(settings.output):
        raise JobError(
            f"{settings.output} exists already", remedy="choose another --output, results are never overwritten"
        )


def choose_capability(
    settings: S,
    program: Program,
    client: InfoClient,
    nodes: Sequence[str],
    seconds: float,
    say: Callable[[str], None],
    unit: str,
) -> S:
    """The settings with the capability that decides, once every node has a value of it, which may take `seconds`.

    Where no node can have one before a first job has run, it is the one that the user named for that case. `unit` is
    what an item is called, in the plural.
    """
    try:
        if settings.cold_start and (why := why_cold(client, settings.capability, program, nodes)):
            say(f"no node has a {settings.capability} yet ({why}): {settings.cold_start} decides this time")
            settings = replace(settings, capability=settings.cold_start)
        capability = settings.capability
        readings = read_capability(
            client,
            capability,
            program,
            nodes,
            seconds,
            lambda missing: say(f"waiting for {capability} of {', '.join(missing)}"),
        )
        if readings.kind == RECORDED:
            say(readings.help)
    except (InfoError, JobError) as error:
        if settings.fallback is None:
            raise
        say(f"{error}; {settings.fallback} will divide the {unit} instead")
    return settings
