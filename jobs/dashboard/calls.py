"""The calls of the board below /api/v1, and what they answer. Whoever may read may call them; DELETE is for admins.

Refusals have the form of all others, {"error": {"code", "message", "field"}}: 503 when Hadoop is away or no cluster is
known here (the sentence says what to set), 404 for a path or a job that is not there, 422 for a parameter that is
wrong, 409 for ending a job that has ended. Times are Unix seconds, ages and durations seconds, sizes bytes, ratios 0
to 1.

    GET /path?path=/x[&capability=NAME]
        202 {"state": "listing", "path", "files", "listed"}                  ask again in a second
        200 {"state": "ready", "path", "listed_age_seconds", "files", "size_bytes", "blocks", "open_files",
             "erasure_coded_files", "missing_files", "missing": [PATH, at most 100],
             "replicas": [{"replicas", "blocks"}],
             "nodes": [{"node_name", "rack" | null, "blocks", "bytes", "files", "held_ratio", "cached_bytes",
                        "takes_work"}],
             "access_cost": {"measured", "nodes", "most_nodes", "said": [SENTENCE],
                             "entries": [{"reader", "holder", "seconds_per_byte",
                                          "basis": "measured" | "estimated" | "assumed", "age_seconds" | null}]},
             "capability" | null, "values": {NODE: {"value", "unit", "age_seconds", "state", "confidence" | null}},
             "epsilon", "images",
             "plans": [{"policy", "error" | null, "makespan_seconds", "lower_bound_seconds", "makespan_over_bound",
                        "bytes_moved", "bytes_moved_optimal", "bytes_moved_over_optimal" | null, "locality_ratio",
                        "loads": {NODE: FILES}, "access_seconds", "planning_seconds",
                        "nodes": [{"node_name", "images", "size_bytes", "local_images", "moved_bytes", "makespan"}]}],
             "no_plans": SENTENCE | null}
        A file counts as one image. A plan with an `error` has only that and its policy. Makespans are in seconds
        when the capability is in images per second. `access_cost.entries` is empty beyond `most_nodes` nodes.

    GET /jobs
        200 {"jobs": [JOB, the newest first]}
        JOB = {"job_id", "name", "user", "queue", "state", "final", "ended", "progress", "started_at" | null,
               "finished_at" | null, "said", "output" | null}

    GET /jobs/ID
        200 JOB and {"headline", "silent_seconds" | null,
             "status": null | {"job_id", "state", "attempt", "images", "done", "errors", "seconds",
                               "seconds_left" | null, "news": [SENTENCE], "kind", "unit", "of",
                               "section": what the kind of job tells beyond that | null,
                               "containers": [{"role", "index", "node_name", "container_id", "log_address"}],
                               "nodes": [{"node_name", "state", "planned", "images", "errors", "local_images",
                                          "running", "images_per_second", "failures", "said", "beyond_plan"}]},
             "report": null | report.json without leases, and {"stolen_images", "remarks": [SENTENCE],
                       "nodes": [... "stolen_images"],
                       "timeline": {"seconds", "kinds": {KIND: WORDS},
                                    "lanes": [{"node_name", "said", "bars": [BAR], "refused": [BAR], "failures"}]}},
             "no_report": SENTENCE | null, "record": null | as status,
             "ending": null | {"state": "asked" | "done" | "failed", "said"}}
        BAR = {"begin", "end", "kind", "said"}
        `status` while the job runs, `report` or `no_report` after it; `record` instead where a kind of job has no
        output. `beyond_plan` is what a node does of others' parts.

    GET /jobs/ID/logs
        200 {"job_id", "ended", "streams", "containers": [{"container_id", "node_name", "role"}]}
    GET /jobs/ID/logs?container=C[&stream=stdout][&offset=0]
        200 {"job_id", "ended", "container_id", "node_name", "stream", "offset", "next", "more", "text"}
        Ask again with offset=`next`, at once if `more`. Lines come whole, and of a long log only the last 2 MiB:
        `offset` says where the text begins.

    GET /jobs/ID/decision[?node=NAME]
        200 what `nodewise job explain ID --json` prints, and {"heading": [SENTENCE]}

    DELETE /jobs/ID
        202 {"job_id", "ending": {"state": "asked", "said": ""}}             GET /jobs/ID tells what came of it
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from flask import jsonify, request
from flask.typing import ResponseReturnValue

from hadoop.errors import HadoopError
from hadoop.rest.pages import NotKnown
from hadoop.rest.webhdfs import WebHdfs
from infosvc.wire.errors import Conflict, InvalidInput, NotFound, NotReady
from infosvc.wire.records import Role, check_name
from jobs.dashboard.briefly import Briefly
from jobs.dashboard.hdfs import plain_path
from jobs.dashboard.site import Place, Site
from jobs.dashboard.values import Values
from jobs.errors import JobError

if TYPE_CHECKING:
    from jobs.dashboard.showing import Reader
    from jobs.dashboard.yarn import Known, RestYarn

T = TypeVar("T")
View = Callable[..., ResponseReturnValue]

JOB_ID = re.compile(r"application_[0-9]{1,20}_[0-9]{1,20}")
MOST_AT_ONCE = 32
"""Calls under way: a Hadoop that hangs must leave the service its other threads."""
LIVE_SECONDS = 1.0
LIST_SECONDS = 2.0
SETTLED_SECONDS = 20.0
"""For what hardly changes: plans of one listing, decisions, reports."""
LISTING_WAIT_SECONDS = 3.0
LARGEST_OFFSET = 2**53


class Calls:
    """What is behind the calls. What it needs to read and to plan is imported by the first one: few services do."""

    def __init__(self, site: Site, values: Values, note: Callable[[], None]) -> None:
        self._site = site
        self._values = values
        self._note = note
        self._briefly = Briefly()
        self._lock = threading.Lock()
        self._made: dict[str, Any] = {}

    def path(self) -> ResponseReturnValue:
        """GET /path."""
        from jobs.dashboard.listing import Listings, Progress
        from jobs.dashboard.planning import path_view

        path = plain_path(request.args.get("path", ""))
        capability = request.args.get("capability") or None
        if capability:
            check_name(capability, "capability")
        place = self._site.place()
        found = self._once("listings", Listings).get(self._hdfs(place), place.namenode_http, path, LISTING_WAIT_SECONDS)
        if isinstance(found, Progress):
            return jsonify({"state": "listing", "path": path, "files": found.files, "listed": found.listed}), 202

        def make_view() -> dict[str, Any]:
            return path_view(found, self._running(place), self._values, capability)

        key = ("path", place, path, capability, found.listed_at)
        return jsonify(self._briefly.get(key, LIST_SECONDS, make_view))

    def jobs(self) -> ResponseReturnValue:
        """GET /jobs."""
        from jobs.dashboard.showing import row

        place = self._site.place()
        found = self._briefly.get(("jobs", place), LIST_SECONDS, self._yarn(place).all)
        return jsonify({"jobs": [row(known) for known in found]})

    def job(self, job_id: str) -> ResponseReturnValue:
        """GET /jobs/ID."""
        from jobs.dashboard.showing import Watches, live, outcome

        place, watches = self._site.place(), self._once("watches", Watches)
        known = self._find_job(place, job_id)

        def look() -> dict[str, Any]:
            return live(known, watches.look(known, self._yarn(place).status))

        body = self._briefly.get(("live", place, job_id), LIVE_SECONDS, look)
        key = ("outcome", place, job_id, known.application.has_ended)
        told = self._briefly.get(key, SETTLED_SECONDS, lambda: outcome(self._reader(place), known))
        return jsonify(body | told | {"ending": self._endings().of(job_id)})

    def logs(self, job_id: str) -> ResponseReturnValue:
        """GET /jobs/ID/logs."""
        from jobs.dashboard import log_pieces

        place = self._site.place()
        known = self._find_job(place, job_id)
        key = ("containers", place, job_id)

        def list_containers() -> list[log_pieces.Container]:
            told = self._reader(place).containers(known)
            yarn = self._yarn(place)
            return log_pieces.containers(place, known.application.application_id, yarn.node_addresses(), told)

        found = self._briefly.get(key, LIST_SECONDS, list_containers)
        container = request.args.get("container")
        if not container:
            return jsonify(log_pieces.containers_json(known, found))
        stream, offset = request.args.get("stream", "stdout"), _offset(request.args.get("offset", "0"))
        return jsonify(log_pieces.piece(place, known, found, container, stream, offset))

    def decision(self, job_id: str) -> ResponseReturnValue:
        """GET /jobs/ID/decision."""
        from jobs.dashboard.showing import decision_json

        place, node = self._site.place(), request.args.get("node") or None
        key = ("decision", place, _check_job_id(job_id), node)
        body = self._briefly.get(
            key, SETTLED_SECONDS, lambda: decision_json(self._reader(place).decision(job_id), node)
        )
        return jsonify(body)

    def end(self, job_id: str) -> ResponseReturnValue:
        """DELETE /jobs/ID."""
        place = self._site.place()
        known = self._yarn(place).find(_check_job_id(job_id))
        if known.application.has_ended:
            raise Conflict(f"{job_id} has ended already: {known.application.final.lower()}")
        self._endings().begin(place, job_id, self._note)
        return jsonify({"job_id": job_id, "ending": self._endings().of(job_id)}), 202

    def _find_job(self, place: Place, job_id: str) -> Known:
        ask = self._yarn(place).find
        return self._briefly.get(("job", place, _check_job_id(job_id)), LIVE_SECONDS, lambda: ask(job_id))

    def _running(self, place: Place) -> list[str]:
        return self._briefly.get(("nodes", place), LIST_SECONDS, self._yarn(place).running_nodes)

    def _hdfs(self, place: Place) -> WebHdfs:
        found: WebHdfs = self._once(f"hdfs {place}", lambda: WebHdfs(place.namenode_http, place.user))
        return found

    def _yarn(self, place: Place) -> RestYarn:
        from jobs.dashboard.yarn import RestYarn

        return RestYarn(place)

    def _reader(self, place: Place) -> Reader:
        from jobs.dashboard.showing import Reader

        return Reader(self._hdfs(place), self._yarn(place))

    def _endings(self) -> Any:
        from jobs.dashboard.ending import Endings

        return self._once("endings", lambda: Endings(self._site.home))

    def _once(self, name: str, make: Callable[[], T]) -> T:
        """What lives as long as the service, made when it is first needed."""
        with self._lock:
            if name not in self._made:
                self._made[name] = make()
            found: T = self._made[name]
            return found


class Routed(NamedTuple):
    """One call: its path below /api/v1, its name, what answers it, and who may make it."""

    rule: str
    name: str
    view: View
    role: Role = Role.READER
    method: str = "GET"


def make_routes(calls: Calls) -> list[Routed]:
    """All calls."""
    room = threading.BoundedSemaphore(MOST_AT_ONCE)
    found = (
        Routed("/path", "path", calls.path),
        Routed("/jobs", "jobs", calls.jobs),
        Routed("/jobs/<job_id>", "job", calls.job),
        Routed("/jobs/<job_id>", "end", calls.end, Role.ADMIN, "DELETE"),
        Routed("/jobs/<job_id>/logs", "logs", calls.logs),
        Routed("/jobs/<job_id>/decision", "decision", calls.decision),
    )
    return [one._replace(view=translate_errors(one.view, room)) for one in found]


def translate_errors(view: View, room: threading.BoundedSemaphore) -> View:
    """The view with what can go wrong in the service's own errors: the one place where Hadoop's become those.

    NotReady, at once, when there is no `room` for one more call.
    """

    @wraps(view)
    def call(**named: str) -> ResponseReturnValue:
        if not room.acquire(blocking=False):
            raise NotReady(f"{MOST_AT_ONCE} calls wait for Hadoop already", remedy="try again in a few seconds")
        try:
            return view(**named)
        except NotKnown as error:
            raise NotFound(str(error)) from error
        except HadoopError as error:
            raise NotReady(str(error)) from error
        except JobError as error:
            raise NotFound(str(error)) from error
        finally:
            room.release()

    return call


def _check_job_id(job_id: str) -> str:
    if not JOB_ID.fullmatch(job_id):
        raise InvalidInput(f"{job_id!r} is no job id", "job_id", remedy="it looks like application_1700000000000_0001")
    return job_id


def _offset(said: str) -> int:
    if not (said.isascii() and said.isdecimal() and len(said) < 17 and int(said) <= LARGEST_OFFSET):
        raise InvalidInput(f"offset is {said[:30]!r}: it must be a whole number of bytes, 0 or more", "offset")
    return int(said)
