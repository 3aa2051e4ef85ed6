"""What answers the calls of the board below /api/v1, which `routes` lists.

What they answer stands in `answers` and `path_answers`, field by field, and how they are called in `document`. Refusals
have the form of all others, {"error": {"code", "message", "field"}}: 503 when Hadoop is away or no cluster is known
here (the sentence says what to set), 404 for a path or a job that is not there, 403 for what Hadoop with Kerberos does
not show to the caller, 422 for a parameter that is wrong, 409 for ending a job that has ended. Times are Unix seconds,
ages and durations seconds, sizes bytes, ratios 0 to 1.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

from flask import Response, jsonify, request
from flask.typing import ResponseReturnValue

from hadoop.errors import HadoopError
from hadoop.rest.webhdfs import WebHdfs
from infosvc.wire.errors import Conflict, InfoError, InvalidInput, NotReady
from infosvc.wire.fields import answer_of
from infosvc.wire.records import check_name
from infosvc.wire.tasks import POINTS
from jobs.dashboard.briefly import Briefly
from jobs.dashboard.parameters import check_job_id, read_whole_number
from jobs.dashboard.sources.eyes import SERVICE, Eyes, Hdfs, SeenHdfs, name_of_home
from jobs.dashboard.sources.hdfs import plain_path
from jobs.dashboard.sources.site import Place, Site
from jobs.dashboard.sources.values import ServiceView

if TYPE_CHECKING:
    from jobs.dashboard.answers import JobContainer, WholeJob
    from jobs.dashboard.job_events import JobEvents
    from jobs.dashboard.pool_answers import ShownPool
    from jobs.dashboard.showing import Reader
    from jobs.dashboard.sources.yarn import Known, RestYarn
    from jobs.kinds.pool.client import Pool

T = TypeVar("T")
Tell = Callable[[Mapping[str, Any]], None]

VALUES_AT_ONCE = 4
"""Calls that read what tasks have reported: one may need 60 MB of memory."""
VALUES_WAIT_SECONDS = 5.0
LIVE_SECONDS = 1.0
LIST_SECONDS = 2.0
SETTLED_SECONDS = 20.0
"""For what hardly changes: plans of one listing, decisions, reports."""
LISTING_WAIT_SECONDS = 3.0
INFER_SECONDS = 30


class Calls:
    """What is behind the calls. What it needs to read and to plan is imported by the first one: few services do."""

    def __init__(
        self, site: Site, values: ServiceView, note: Callable[[], None], open_paths: Sequence[str] = ()
    ) -> None:
        self._site = site
        self._values = values
        self._note = note
        self._open_paths = open_paths
        self._briefly = Briefly()
        self._lock = threading.Lock()
        self._values_room = threading.BoundedSemaphore(VALUES_AT_ONCE)
        self._made: dict[str, Any] = {}

    def path(self) -> ResponseReturnValue:
        """Show a path of HDFS, or how far it is listed."""
        from jobs.dashboard.listing import Listings, Progress
        from jobs.dashboard.path_answers import ListingPath
        from jobs.dashboard.planning import path_view

        path = plain_path(request.args.get("path", ""))
        capability = request.args.get("capability") or None
        if capability:
            check_name(capability, "capability")
        place = self._site.place()
        eyes = self._eyes(place)
        hdfs, whose = self._seen(place, eyes), (place.namenodes, eyes)
        found = self._once("listings", Listings).get(hdfs, whose, path, LISTING_WAIT_SECONDS)
        if isinstance(found, Progress):
            return _answer(ListingPath(path, found.files, found.listed)), 202

        def make_view() -> dict[str, Any]:
            return answer_of(path_view(found, self._running(place), self._values, capability))

        key = ("path", place, eyes, path, capability, found.listed_at)
        return jsonify(self._briefly.get(key, LIST_SECONDS, make_view))

    def jobs(self) -> ResponseReturnValue:
        """List the jobs that YARN remembers."""
        from jobs.dashboard.answers import Jobs
        from jobs.dashboard.showing import row

        place = self._site.place()
        yarn = self._yarn(place, self._eyes(place))
        return _answer(Jobs(tuple(map(row, yarn.own(self._list_jobs(place))))))

    def look(self, tell: Tell) -> None:
        """Tell what has become of jobs since the list was last read; nothing while Hadoop does not answer."""
        self._job_events().begin(tell)
        with suppress(HadoopError, InfoError):
            self._list_jobs(self._site.place())

    def failed_jobs(self) -> list[Known]:
        """The jobs that failed and are no tasks, as YARN remembers them; none while Hadoop does not answer."""
        from jobs.dashboard.job_events import has_failed

        with suppress(HadoopError, InfoError):
            return [known for known in self._list_jobs(self._site.place()) if has_failed(known)]
        return []

    def busy_queues(self) -> frozenset[str]:
        """The queues in which applications of any type run; none while Hadoop does not answer."""
        with suppress(HadoopError, InfoError):
            return self._yarn(self._site.place()).busy_queues()
        return frozenset()

    def job(self, job_id: str) -> ResponseReturnValue:
        """Show a job."""
        from jobs.dashboard.showing import Watches, live, outcome

        place, watches = self._site.place(), self._once("watches", Watches)
        eyes = self._eyes(place)
        known = self._find_job(place, eyes, job_id)

        def look() -> WholeJob:
            return live(known, watches.look(known, self._yarn(place).status))

        shown = self._briefly.get(("live", place, job_id), LIVE_SECONDS, look)
        key = ("outcome", place, eyes, job_id, known.application.has_ended)
        left = self._briefly.get(key, SETTLED_SECONDS, lambda: outcome(self._reader(place, eyes), known))
        return _answer(replace(shown, **vars(left), ending=self._endings().of(job_id)))

    def logs(self, job_id: str) -> ResponseReturnValue:
        """Show a piece of a container's log, or which containers there are."""
        from jobs.dashboard import log_pieces

        place = self._site.place()
        eyes = self._eyes(place)
        known = self._find_job(place, eyes, job_id)
        key = ("containers", place, eyes, job_id)

        def list_containers() -> list[JobContainer]:
            told = self._reader(place, eyes).containers(known)
            yarn = self._yarn(place)
            return log_pieces.containers(place, known.application.application_id, yarn.node_addresses(), told)

        found = self._briefly.get(key, LIST_SECONDS, list_containers)
        container = request.args.get("container")
        if not container:
            return _answer(log_pieces.containers_answer(known, found))
        stream, offset = request.args.get("stream", "stdout"), read_whole_number("offset", "0")
        return _answer(log_pieces.piece(place, known, found, container, stream, offset))

    def queue(self) -> ResponseReturnValue:
        """Show YARN's queues, and what waits in them."""
        from hadoop.rest.resourcemanager import ResourceManager
        from jobs.dashboard.queue.line import Row, read_ended
        from jobs.dashboard.queue.shown import look, shown_to

        place, tasks = self._site.place(), self._values.tasks()
        manager = ResourceManager(place.managers, place.user)

        def list_ended() -> list[Row]:
            return self._briefly.get(("ended", place), SETTLED_SECONDS, lambda: read_ended(manager))

        whole = self._briefly.get(("queue", place), LIST_SECONDS, lambda: look(manager, tasks, list_ended))
        return _answer(shown_to(self._values.viewer(), whole, tasks))

    def pools(self) -> ResponseReturnValue:
        """List the pools that are up."""
        from jobs.dashboard.pools import list_pools
        from jobs.kinds.pool.client import Pools

        place = self._site.place()
        eyes = self._eyes(place)
        eyes.check_jobs()
        ask = Pools(place.conf_dir, place.user).list
        return _answer(
            list_pools(self._briefly.get(("pools", place), LIST_SECONDS, ask), eyes, self._user(place, eyes))
        )

    def pool(self, pool: str) -> ResponseReturnValue:
        """Show a pool."""
        from jobs.dashboard.pools import show_pool
        from jobs.dashboard.showing import Watches

        place, watches = self._site.place(), self._once("watches", Watches)
        eyes = self._eyes(place)
        eyes.check_jobs()

        def look() -> ShownPool:
            found = self._find_pool(place, eyes, pool)
            known = self._find_job(place, eyes, found.application_id)
            return show_pool(pool, found, watches.look(known, self._yarn(place).status))

        return _answer(self._briefly.get(("pool", place, eyes, pool), LIVE_SECONDS, look))

    def give(self, pool: str) -> ResponseReturnValue:
        """Give a job to a pool."""
        from infosvc.wire.bodies import PoolJobBody
        from jobs.dashboard.pools import Giving

        body, place = self._values.read_body(PoolJobBody), self._site.place()
        eyes = self._eyes(place)
        eyes.check_jobs()
        giving: Giving = self._once("giving", Giving)
        user = self._values.viewer().user_name
        return _answer(giving.give(user, pool, lambda: self._find_pool(place, eyes, pool), body, self._note)), 201

    def infer(self, pool: str) -> ResponseReturnValue:
        """Have a pool look at a picture."""
        from jobs.dashboard.inference import Inference
        from jobs.kinds.pool.wishes import Picture

        name, path, content = request.args.get("name", ""), request.args.get("path", ""), request.get_data()
        seconds = read_whole_number("seconds", str(INFER_SECONDS))
        if bool(path) == bool(content):
            raise InvalidInput("either the body holds a picture, or path names one of HDFS", "path")
        if not 1 <= seconds <= INFER_SECONDS:
            raise InvalidInput(f"seconds is {seconds}: it must be from 1 to {INFER_SECONDS}", "seconds")
        place = self._site.place()
        eyes = self._eyes(place)
        eyes.check_jobs()
        wish, inference = Picture(name or path or "picture", path, seconds), self._once("inference", Inference)
        user = self._values.viewer().user_name
        found = inference.infer(user, (place, eyes, pool), lambda: self._find_pool(place, eyes, pool), wish, content)
        return _answer(found)

    def task_log(self, task_id: str) -> ResponseReturnValue:
        """Show a piece of a task's log."""
        from jobs.dashboard.tasks import record

        task, hdfs = self._values.task(task_id), self._hdfs(self._site.place())
        stream, offset = request.args.get("stream", "stdout"), read_whole_number("offset", "0")
        return _answer(record.log_piece(hdfs, task, stream, read_whole_number("attempt", "0") or None, offset))

    def task_values(self, task_id: str) -> ResponseReturnValue:
        """Show what a task's program has reported, or used."""
        from jobs.dashboard.tasks import curves

        task, hdfs = self._values.task(task_id), self._hdfs(self._site.place())
        attempt, points = read_whole_number("attempt", "0") or None, read_whole_number("points", str(POINTS))
        if not self._values_room.acquire(timeout=VALUES_WAIT_SECONDS):
            raise NotReady("values of many tasks are read already", remedy="try again in a few seconds")
        try:
            of = request.args.get("of", curves.REPORTED)
            return _answer(curves.curves(hdfs, task, attempt, points, of))
        finally:
            self._values_room.release()

    def task_decision(self, task_id: str) -> ResponseReturnValue:
        """Explain why a task runs where it runs."""
        from jobs.dashboard.tasks import record

        task, hdfs = self._values.task(task_id), self._hdfs(self._site.place())
        return _answer(record.decision(hdfs, task, read_whole_number("attempt", "0") or None))

    def task_outputs(self, task_id: str) -> ResponseReturnValue:
        """List the files that a task left."""
        from jobs.dashboard.tasks import outputs

        return _answer(outputs.listing(self._hdfs(self._site.place()), self._values.task(task_id)))

    def task_output_file(self, task_id: str) -> ResponseReturnValue:
        """Bring a piece of a file that a task left."""
        from jobs.dashboard.tasks import outputs

        task, hdfs = self._values.task(task_id), self._hdfs(self._site.place())
        name = request.args.get("path", "")
        found = outputs.piece(hdfs, task, name, read_whole_number("offset", "0"))
        answer = Response(found.content, content_type="application/octet-stream")
        answer.headers["Content-Disposition"] = "attachment"
        if found.next is not None:
            answer.headers["Link"] = f'<?{urlencode({"path": name, "offset": found.next})}>; rel="next"'
        return answer

    def decision(self, job_id: str) -> ResponseReturnValue:
        """Explain how a job was divided."""
        from jobs.dashboard.showing import decision_answer

        place, node = self._site.place(), request.args.get("node") or None
        eyes = self._eyes(place)
        eyes.check_jobs()
        key = ("decision", place, eyes, check_job_id(job_id), node)
        said = self._briefly.get(
            key, SETTLED_SECONDS, lambda: decision_answer(self._reader(place, eyes).decision(job_id), node)
        )
        return _answer(said)

    def end(self, job_id: str) -> ResponseReturnValue:
        """End a job."""
        from jobs.dashboard.answers import EndedJob

        place = self._site.place()
        known = self._yarn(place).find(check_job_id(job_id))
        if known.application.has_ended:
            raise Conflict(f"{job_id} has ended already: {known.application.final.lower()}")
        self._endings().begin(place, job_id, self._note)
        return _answer(EndedJob(job_id, self._endings().of(job_id))), 202

    def _list_jobs(self, place: Place) -> list[Known]:
        def ask() -> list[Known]:
            found = self._yarn(place).all()
            self._job_events().compare(place, found)
            return found

        return self._briefly.get(("jobs", place), LIST_SECONDS, ask)

    def _job_events(self) -> JobEvents:
        from jobs.dashboard.job_events import JobEvents

        return self._once("events", JobEvents)

    def _find_job(self, place: Place, eyes: Eyes, job_id: str) -> Known:
        ask = self._yarn(place, eyes).find
        return self._briefly.get(("job", place, eyes, check_job_id(job_id)), LIVE_SECONDS, lambda: ask(job_id))

    def _find_pool(self, place: Place, eyes: Eyes, name: str) -> Pool:
        """The pool of a name that belongs to whose eyes they are; NotNow when there is none."""
        from jobs.kinds.pool.client import Pools

        return Pools(place.conf_dir, self._user(place, eyes), self._seen(place, eyes)).find(name)

    def _running(self, place: Place) -> list[str]:
        return self._briefly.get(("nodes", place), LIST_SECONDS, self._yarn(place).running_nodes)

    def _eyes(self, place: Place) -> Eyes:
        """Whose eyes the call is answered with."""
        owners = self._values.viewer().owners if place.has_kerberos else None
        return SERVICE if owners is None else Eyes(next(iter(owners), ""))

    def _hdfs(self, place: Place) -> WebHdfs:
        """HDFS as the service sees it."""
        called = "this service's user" if place.has_kerberos else ""
        found: WebHdfs = self._once(f"hdfs {place}", lambda: WebHdfs(place.namenodes, place.user, called=called))
        return found

    def _seen(self, place: Place, eyes: Eyes) -> Hdfs:
        """HDFS as somebody's eyes see it."""
        service = self._hdfs(place)
        if eyes.user is None:
            return service

        return SeenHdfs(service, eyes.user, self._open_paths, lambda: self._own_name(place))

    def _own_name(self, place: Place) -> str:
        """The user that the service is to Hadoop."""
        return self._briefly.get(("own name", place), SETTLED_SECONDS, lambda: name_of_home(self._hdfs(place)))

    def _user(self, place: Place, eyes: Eyes) -> str:
        """Whose eyes they are, to Hadoop."""
        return eyes.user or self._own_name(place)

    def _yarn(self, place: Place, eyes: Eyes = SERVICE) -> RestYarn:
        from jobs.dashboard.sources.yarn import RestYarn

        return RestYarn(place, eyes)

    def _reader(self, place: Place, eyes: Eyes) -> Reader:
        from jobs.dashboard.showing import Reader

        return Reader(self._seen(place, eyes), self._yarn(place, eyes))

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


def _answer(record: Any) -> Response:
    return jsonify(answer_of(record))
