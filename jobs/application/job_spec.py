"""What a job is told, whatever its kind: `submit` writes it, the application master reads it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from jobs.application.options import check_options, option

INFO_TOKEN, INFO_CA = "info_token", "info_ca"
"""Files beside the application master: what it shows to the information service, and the authority of an https one."""


class Settings:
    """To and from the JSON file that lies beside a running program; what the file lacks has its default.

    JobError when a number lies outside of its option's limits.
    """

    def to_bytes(self) -> bytes:
        """The file's content."""
        record: Any = self
        return json.dumps(asdict(record), indent=1).encode()

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Inverse of `to_bytes`, from the decoded object."""
        record: Any = cls
        built: Self = record(**{f.name: body[f.name] for f in fields(record) if f.name in body})
        check_options(built)
        return built


@dataclass(frozen=True, kw_only=True)
class JobOptions(Settings):
    """What users may say of every job, whatever its kind; waits are in seconds.

    container_wait    that a node may take to give its container, and its program to begin, before it is given up for
                      the time being; the job ends when no node is left that took less
    """

    queue: str = option("default", help="YARN queue to run in.")
    program: str | None = option(
        None,
        help="Have YARN prefer nodes as its plug-in judges them for this program: see docs/yarn-plugin.md  "
        "[default: as for any job].",
        metavar="NAME",
    )
    node_label: str | None = option(
        None, help="YARN's label of the nodes to run on  [default: nodes that serve any job].", metavar="LABEL"
    )
    master_python: str = option(
        sys.executable, help="Python of the application master on the nodes.", show_default=False
    )
    master_memory: int | None = option(
        None,
        help="Memory of the application master, as 640m or 2g  [default: 640m, and 1m for each 1,000 files].",
        least=512,
        is_memory=True,
    )
    capability_wait: float = option(20.0, help="Seconds to wait for fresh values.", least=0)
    container_wait: float = option(60.0, help="Seconds to wait for a node's container.", least=1)
    attempts: int = option(2, help="How often YARN may start the application master.", least=1)
    resources: Mapping[str, int] = option(
        dict,
        flag="--resource",
        help="What else each container needs, such as yarn.io/gpu=1; may be given several times.",
        metavar="NAME=COUNT",
        least=1,
    )
    priority: int = option(1, help="Priority of its requests: YARN serves a job's lowest number first.", least=0)


@dataclass(frozen=True, kw_only=True)
class JobSpec(JobOptions):
    """One job. Paths of HDFS have no scheme; `conf_dir` and `jars` are paths on the nodes.

    kind              a name in jobs.kinds.KINDS
    settings          what that kind is told, as JSON
    token             what containers tell the application master, and it them
    failures          so many of them leave a node out
    requires          what nodes must have to run its environment, as environments.manifest.Requires
    gpus              that each of its containers has, as boxes.gpus.cards.Wanted
    stands            whether it is up for weeks, so that YARN counts its attempts of the last ten minutes alone
    within            the application whose master leads this job too, in whose folder its own lies; "" for its own
    """

    kind: str
    job_id: str
    staging: str
    info_url: str
    conf_dir: str
    jars: str
    user: str
    token: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    failures: int = 3
    requires: Mapping[str, Any] = field(default_factory=dict)
    gpus: Mapping[str, Any] = field(default_factory=dict)
    stands: bool = False
    within: str = ""

    @property
    def application_id(self) -> str:
        """The application of YARN that its containers belong to."""
        return self.within or self.job_id

    @property
    def owners_folder(self) -> str:
        """The folder in HDFS that holds the staging folders of one owner's jobs, and what is kept of them."""
        return self.staging.rpartition(f"/{self.application_id}")[0] or self.staging.rpartition("/")[0]
