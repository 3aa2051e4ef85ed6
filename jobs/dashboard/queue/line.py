"""The applications that have not ended, as the ResourceManager tells of them: those with a place, and those that wait.

An application has a place once a node has the container of its master. What YARN says of it in words may be older: it
writes that anew only when it looks at the application again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hadoop.rest.amounts import MEMORY, VCORES, Amounts, add, parse_amounts
from hadoop.rest.resourcemanager import NodeRoom, ResourceManager
from hadoop.rest.scheduler import Scheduler
from jobs.application.job_record import kind_of
from jobs.dashboard.sources.yarn import Known, parse_known
from jobs.kinds.task.request import TAG

OPEN = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING")
ENDED = ("FINISHED", "FAILED", "KILLED")
MOST_OPEN = 5_000
MOST_ENDED = 2_000
"""As many applications are asked for at most."""
PROGRAM = "program:"
NOT_ACTIVE = "not yet activated"
_ASKED = re.compile(r"AM Resource Request = <(memory:\d{1,9}, vCores:\d{1,6}[^<>]{0,1000})>")
_COUNT = re.compile(r"([^\s:,]{1,200}): ?(\d{1,15})")
_WORDS = {"memory": MEMORY, "vCores": VCORES}
"""What YARN calls them in a sentence."""
_SEATED = ("Scheduler has assigned a container", "AM container is launched")


@dataclass(frozen=True)
class Row:
    """One application; `asks` is what its master asks for, None when YARN does not tell.

    `hosts` are the only nodes that it may have, None for any with its label. Of one with a place, `node_name` has its
    master, which has `master` of what all its `containers` have, `held`; `master` is empty when YARN does not tell. Of
    one without a place, `reserved` is kept on a node. `ran` is seconds since it has its place, or, of one that has
    ended, for which it had it; None when it never did, or YARN does not tell.
    """

    known: Known
    kind: str
    is_job: bool
    priority: int
    asks: Amounts | None
    label: str
    hosts: frozenset[str] | None
    has_place: bool
    is_active: bool
    node_name: str
    held: Amounts
    master: Amounts
    reserved: Amounts
    containers: int
    ran: float | None

    @property
    def job_id(self) -> str:
        """Its id in YARN."""
        return self.known.application.application_id

    @property
    def task_id(self) -> str:
        """The task whose application it says it is, empty for no task."""
        return self._tag(TAG)

    @property
    def program(self) -> str:
        """The program whose speeds and order of nodes it goes by, empty for no program."""
        return self._tag(PROGRAM)

    def _tag(self, prefix: str) -> str:
        tags = self.known.application.tags
        return next((one.removeprefix(prefix) for one in sorted(tags) if one.startswith(prefix)), "")


@dataclass(frozen=True)
class Line:
    """All of it at one moment, `now`, in Unix seconds by YARN's clock; `waiting` by queue, and there as YARN takes it.

    It is not `whole` when there are more applications than were asked for.
    """

    now: float
    scheduler: Scheduler
    rooms: Sequence[NodeRoom]
    seated: Sequence[Row]
    waiting: Sequence[Row]
    whole: bool

    @property
    def counts_all(self) -> bool:
        """Whether YARN gives out all types; else memory alone, and nodes may have more vcores in use than they have."""
        return self.scheduler.counts_all and all(one.free_vcores >= 0 for one in self.rooms)


def read_line(manager: ResourceManager) -> Line:
    """Ask the ResourceManager; HadoopError."""
    scheduler, rooms = manager.scheduler(), manager.rooms()
    told = manager.applications(states=OPEN, most=MOST_OPEN)
    clocks = [_number(one, "startedTime") + _number(one, "elapsedTime") for one in told]
    now = max(clocks, default=0.0) / 1000 or time.time()
    paths = {queue.name.rpartition(".")[2]: queue.name for queue in scheduler.queues}
    rows = [_placed(parse_row(one, now), paths) for one in told]
    return Line(
        now=now,
        scheduler=scheduler,
        rooms=rooms,
        seated=[one for one in rows if one.has_place],
        waiting=sorted((one for one in rows if not one.has_place), key=_order),
        whole=len(told) < MOST_OPEN,
    )


def read_ended(manager: ResourceManager) -> list[Row]:
    """Those that YARN remembers and that have ended, the newest first; HadoopError."""
    told = manager.applications(states=ENDED, most=MOST_ENDED)
    return sorted((parse_row(one, 0.0) for one in told), key=lambda one: -(one.known.finished_at or 0.0))


def parse_row(app: Mapping[str, Any], now: float) -> Row:
    """Read one `app`, which lacks many of its fields where the user who asks may not see them."""
    known = parse_known(app)
    said = known.application.diagnostics
    request = _master_request(app.get("resourceRequests") or ())
    seated = bool(app.get("masterNodeId")) or any(word in said for word in _SEATED)
    launched = _number(app, "launchTime") / 1000
    until = known.finished_at or now
    is_ours = app.get("applicationType") == "NODEWISE"
    return Row(
        known=known,
        kind=(kind_of(known.application.tags) if is_ours else "") or str(app.get("applicationType") or "").lower(),
        is_job=is_ours,
        priority=int(_number(app, "priority")),
        asks=parse_amounts(request.get("capability")) or _said_amounts(said),
        label=str(app.get("amNodeLabelExpression") or app.get("appNodeLabelExpression") or ""),
        hosts=_hosts(app.get("resourceRequests") or ()),
        has_place=known.application.state == "RUNNING" or (known.application.state == "ACCEPTED" and seated),
        is_active=NOT_ACTIVE not in said,
        node_name=str(app.get("masterNodeId") or "").rpartition(":")[0],
        held=_told(app, "allocated", "used"),
        master=_used(app, "amUsed"),
        reserved=_told(app, "reserved", "reserved"),
        containers=max(0, int(_number(app, "runningContainers"))),
        ran=max(0.0, until - launched) if launched else None,
    )


def _placed(row: Row, paths: Mapping[str, str]) -> Row:
    """With the whole path of its queue, of which YARN tells but the last word before it has taken it in."""
    return replace(row, known=replace(row.known, queue=paths.get(row.known.queue, row.known.queue)))


def _order(row: Row) -> tuple[object, ...]:
    """How YARN takes them: active ones first, then by priority and age, which their numbers tell."""
    _, started, number = row.job_id.split("_")
    return row.known.queue, not row.is_active, -row.priority, int(started), int(number)


def _number(app: Mapping[str, Any], key: str) -> float:
    return float(app.get(key) or 0)


def _told(app: Mapping[str, Any], prefix: str, of_partition: str) -> dict[str, int]:
    """So much of all types; -1 stands for what an application that has ended has no more."""
    others = {name: count for name, count in _used(app, of_partition).items() if name not in (MEMORY, VCORES)}
    usual = {MEMORY: _number(app, f"{prefix}MB"), VCORES: _number(app, f"{prefix}VCores")}
    return {name: max(0, int(count)) for name, count in usual.items()} | others


def _used(app: Mapping[str, Any], what: str) -> dict[str, int]:
    """What the capacity scheduler tells of it by partition of the cluster, together."""
    partitions = (app.get("resourceInfo") or {}).get("resourceUsagesByPartition") or ()
    return add(parse_amounts(one.get(what)) for one in partitions)


def _said_amounts(said: str) -> dict[str, int] | None:
    """What a sentence of YARN says that a master asks for.

    >>> _said_amounts("AM Resource Request = <memory:768, vCores:1, yarn.io/gpu: 2>; and more")
    {'memory-mb': 768, 'vcores': 1, 'yarn.io/gpu': 2}
    """
    asked = _ASKED.search(said)
    return {_WORDS.get(name, name): int(count) for name, count in _COUNT.findall(asked[1])} if asked else None


def _master_request(requests: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Of what is asked for, the container on any node: before it has a master, an application asks for nothing else."""
    return next((one for one in requests if one.get("resourceName") == "*"), {})


def _hosts(requests: Sequence[Mapping[str, Any]]) -> frozenset[str] | None:
    """The nodes that are named where no other will do."""
    if _master_request(requests).get("relaxLocality", True):
        return None
    names = (str(one.get("resourceName") or "") for one in requests)
    return frozenset(name for name in names if name != "*" and not name.startswith("/"))
