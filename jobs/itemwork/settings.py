"""What a job that divides items is told, beyond what every job is: what users may say of it, whatever the items are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from jobs.application.job_spec import Settings
from jobs.application.options import option
from jobs.application.package import WORKER_PYTHON, WORKER_PYTHON_VARIABLE
from jobs.division.readings import Program
from locality.policies import POLICIES

PROCESS_MEMORY_MB = 1024
"""Of a container, unless asked for otherwise: one process for each vcore, and the one they are forked from."""


@dataclass(frozen=True, kw_only=True)
class ItemSettings(Settings, ABC):
    """Paths of HDFS have no scheme once the job is submitted; `worker_python` is a path on the nodes.

    environment       an archive in HDFS with the worker's Python, None for `worker_python` on the node
    parts             of an environment that was made, in place of that: paths in HDFS by the folders that they become
    lease_seconds     a worker that is silent for so long loses what it holds
    steal             whether a node that has finished its part takes of others'
    cold_start        decides where every node's producer of the capability says that it has no data yet, None to refuse
    fallback          the policy where the capability cannot be had, None to refuse
    row_bytes         about the most bytes of a row
    """

    input: str = option(help="Folder of items in HDFS.")
    output: str = option(help="Folder in HDFS for the results; must not exist yet.")
    capability: str = option(help="Data name that tells what a node can do.", metavar="NAME")
    cold_start: str | None = option(
        None,
        help="Data name that decides where no node has the capability before a first job  [default: that of free CPU].",
        metavar="NAME",
    )
    policy: str = option("algorithm1", help=f"One of {', '.join(sorted(POLICIES))}.")
    memory_mb: int | None = option(
        None,
        flag="--memory",
        help="MB of each container  [default: 1024, and 1024 for each vcore].",
        least=256,
        is_memory=True,
    )
    vcores: int = option(1, help="Cores of each container.", least=1)
    worker_python: str = option(
        str(WORKER_PYTHON),
        help="Python of the workers on the nodes [default: that of this installation].",
        envvar=WORKER_PYTHON_VARIABLE,
        show_default=False,
    )
    lease_seconds: float = option(10.0, help="Seconds of silence after which a node's work goes to others.", least=5)
    steal: bool = option(True, help="Let idle nodes take work that others still have.", opposite="--no-steal")
    fallback: str | None = option(
        None, help="Policy to use when the capability is not available  [default: refuse].", metavar="POLICY"
    )
    environment: str | None = option(
        None,
        flag="--env",
        help="Environment of the workers, see `nodewise env`  [default: the node's own Python].",
        metavar="NAME@VERSION|PATH|latest",
    )
    parts: Mapping[str, str] = field(default_factory=dict)

    row_bytes: int

    @property
    @abstractmethod
    def program(self) -> Program:
        """What works on the items, and on how many at once: speeds are recorded for it."""

    @property
    def at_once(self) -> int:
        """Items that a worker computes at a time: a full batch of each of its processes."""
        return self.program.batch * self.vcores

    @property
    def container_mb(self) -> int:
        """MB of each container."""
        return self.memory_mb or PROCESS_MEMORY_MB * (1 + self.vcores)
