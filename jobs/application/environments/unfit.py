"""Which nodes cannot run an environment, by what they tell the information service."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from environments.errors import EnvError
from environments.fit import ARCHITECTURE, DRIVER, FLAGS, find_deciding, find_newest_fitting, find_obstacle
from environments.manifest import Requires
from environments.reference import Reference
from environments.store import Store
from hadoop.client.filesystem import FileSystem
from hadoop.errors import HadoopError
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError, NotFound
from jobs.errors import JobError


@dataclass(frozen=True)
class Unfit:
    """The nodes that cannot run an environment, with the reasons.

    `find_newest` finds the newest version of it that one of some nodes can run, "" for none.
    """

    env: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)
    find_newest: Callable[[Sequence[str]], str] = lambda _: ""

    def leave_out(self, nodes: Sequence[str]) -> list[str]:
        """Those of the nodes that can run it; JobError when there are some and none of them can."""
        fitting = [node for node in nodes if node not in self.reasons]
        if nodes and not fitting:
            newest = self.find_newest(nodes)
            known = f"take {newest}, the newest version that runs on one of them"
            hint = known if newest else "no version of it is known to run on any of them"
            raise JobError(
                f"none of the nodes that may run it can run {self.env}: on {nodes[0]}, {self.reasons[nodes[0]]}",
                remedy=f"{hint}; `nodewise env fit {self.env}` tells of each node",
            )
        return fitting


ALL_FIT = Unfit()


def judge(filesystem: FileSystem, client: InfoClient, env: str, requires: Requires, nodes: Iterable[str]) -> Unfit:
    """Those of the nodes that cannot run `env`, which requires this; InfoError as of `find_unfit`."""
    return Unfit(env, find_unfit(client, requires, nodes), lambda among: _find_newest(filesystem, client, env, among))


def find_unfit(client: InfoClient, requires: Requires, nodes: Iterable[str]) -> dict[str, str]:
    """Those of the nodes that cannot run what requires this, with the reason; InfoError when that cannot be known.

    The service is asked for what decides alone, and not missed where no card is required.
    """
    try:
        told = tell_nodes(client, find_deciding(requires))
    except InfoError:
        if requires.cuda or requires.driver:
            raise
        told = {}
    found = {node: find_obstacle(requires, told.get(node, {})) for node in nodes}
    return {node: why for node, why in found.items() if why}


def tell_nodes(client: InfoClient, names: Iterable[str] = (ARCHITECTURE, FLAGS, DRIVER)) -> dict[str, dict[str, str]]:
    """What decides, by node and data name; of nodes that tell nothing there is nothing."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        try:
            told = client.data(name)
        except NotFound:
            continue
        for one in told:
            if one.data_value is not None:
                found.setdefault(one.node_name, {})[name] = one.data_value
    return found


def _find_newest(filesystem: FileSystem, client: InfoClient, env: str, nodes: Sequence[str]) -> str:
    """NAME@VERSION of the newest that one of the nodes can run, "" where there is none or that cannot be found."""
    with suppress(EnvError, HadoopError, InfoError):
        manifests = Store(filesystem).manifests(Reference.parse(env).name)
        told = tell_nodes(client, {name for one in manifests for name in find_deciding(one.requires)})
        newest = find_newest_fitting(manifests, {node: told.get(node, {}) for node in nodes})
        return f"{newest.name}@{newest.version}" if newest else ""
    return ""
