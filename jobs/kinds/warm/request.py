"""What a user asks for when an environment is to be laid out ahead, as an order for YARN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from jobs.application.environments import laid
from jobs.application.job_spec import JobOptions
from jobs.application.submit import InfoAccess, Order, Submitter
from jobs.errors import JobError
from jobs.kinds.warm.settings import WarmSettings


def order(
    submitter: Submitter, environment: str, nodes: Sequence[str], options: JobOptions, access: InfoAccess
) -> Order:
    """The job as it is submitted, for all nodes that can run the environment where none is named.

    JobError when there is no such environment, or a node takes no work or cannot run it.
    """
    found = laid.find_made(submitter.filesystem, environment)
    called = f"{found.manifest.name}@{found.manifest.version}" if found.manifest else environment
    asked = Order(
        kind="warm",
        name=f"nodewise env warm {called}",
        settings={},
        options=options,
        access=access,
        needs_service=False,
        env=called,
        requires=found.requires,
    )
    settings = WarmSettings(environment=called, nodes=choose(nodes, submitter.check(asked), called), parts=found.parts)
    return replace(asked, settings=asdict(settings))


def choose(named: Sequence[str], able: Sequence[str], environment: str) -> list[str]:
    """The nodes that it is laid out on, each once: all that are able where none is named; JobError for others."""
    chosen = list(dict.fromkeys(named or able))
    if unable := [node for node in chosen if node not in able]:
        raise JobError(
            f"{', '.join(unable)} cannot have {environment}: no NodeManager accepts work there, or it cannot run it",
            remedy=f"`nodewise cluster status` and `nodewise env fit {environment}` tell",
        )
    return chosen
