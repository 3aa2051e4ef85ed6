"""Whether an environment can run on a node, by what the node tells of itself, or why it cannot.

NVIDIA's drivers run programs of every CUDA of a family from one version on: CUDA Compatibility, table 1 (minor version
compatibility), and the release notes of CUDA 13.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from environments.manifest import Manifest, Requires
from environments.reference import version_key

OLDEST_DRIVERS = {11: 450, 12: 525, 13: 580}
"""By family of CUDA."""
ARCHITECTURE, FLAGS, DRIVER = "cpu_architecture", "cpu_flags", "gpu_driver_version"
"""Data names of what decides."""

Node = Mapping[str, str]
"""Values of a node by data name."""


def find_deciding(requires: Requires) -> list[str]:
    """The data names by which nodes are judged for it.

    >>> find_deciding(Requires(architecture="x86_64", cuda="12.1"))
    ['cpu_architecture', 'gpu_driver_version']
    """
    decides = {ARCHITECTURE: requires.architecture, FLAGS: requires.cpu_flags, DRIVER: requires.cuda or requires.driver}
    return [name for name, wanted in decides.items() if wanted]


def find_obstacle(requires: Requires, node: Node) -> str:
    """Why it cannot run there, "" where it can. A node that tells nothing of its processors is not left out for them.

    >>> find_obstacle(Requires(cuda="12.1"), {"gpu_driver_version": "470.82.01"})
    'driver 470.82.01 is older than CUDA 12.1 needs: 525'
    """
    return _find_other_cpu(requires, node) or _find_old_driver(requires, node)


def fit(requires: Requires, nodes: Mapping[str, Node]) -> dict[str, str]:
    """By node: why not, or ""."""
    return {name: find_obstacle(requires, node) for name, node in nodes.items()}


def find_newest_fitting(manifests: Iterable[Manifest], nodes: Mapping[str, Node]) -> Manifest | None:
    """The newest version that could run on any of the nodes."""
    fitting = [one for one in manifests if not all(fit(one.requires, nodes).values())]
    return max(fitting, key=lambda one: version_key(one.version), default=None)


def _find_other_cpu(requires: Requires, node: Node) -> str:
    if requires.architecture and (found := node.get(ARCHITECTURE, requires.architecture)) != requires.architecture:
        return f"its processors are {found}, not {requires.architecture}"
    lacking = [one for one in requires.cpu_flags if FLAGS in node and one not in node[FLAGS].split()]
    return f"its processors lack {', '.join(lacking)}" if lacking else ""


def _find_old_driver(requires: Requires, node: Node) -> str:
    if not (requires.cuda or requires.driver):
        return ""
    driver = node.get(DRIVER)
    if driver is None:
        return "it has no card of NVIDIA whose driver is known"
    family = int(match[0]) if (match := re.match(r"[0-9]{1,9}(?![0-9])", requires.cuda)) else 0
    oldest = str(OLDEST_DRIVERS.get(family, 0))
    if version_key(driver) < version_key(oldest):
        return f"driver {driver} is older than CUDA {requires.cuda} needs: {oldest}"
    if requires.driver and version_key(driver) < version_key(requires.driver):
        return f"driver {driver} is older than {requires.driver}"
    return ""
