"""The cluster as the submitter sees it: tasks go to YARN as applications that carry their task's id as a tag."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from hadoop.client.yarn import Application
from hadoop.errors import HadoopError
from hadoop.rest.addresses import resourcemanager_addresses
from hadoop.rest.resourcemanager import NodeOrder, NodeRoom, ResourceManager
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError, InvalidInput, NotFound
from infosvc.wire.fields import answer_of
from infosvc.wire.records import Datum
from infosvc.wire.task_spec import TASK_ID
from infosvc.wire.tasks import ConsideredNode, Task
from jobs.application import job_record
from jobs.application.attempts import attempt_of
from jobs.application.environments import laid as laying
from jobs.application.environments.cached import find_all_ready
from jobs.application.environments.laid import Laid
from jobs.application.environments.unfit import ALL_FIT, Unfit, judge
from jobs.application.submit import InfoAccess, MasterNeeds, Order, Submitter
from jobs.division.decision_store import JOB_ID
from jobs.division.gpu_nodes import GPU, find_lacking
from jobs.errors import JobError
from jobs.kinds.task import environment_image
from jobs.kinds.task.image_store import owners_folder
from jobs.kinds.task.request import (
    check,
    further,
    has_own_files,
    image_id,
    is_bound,
    needs,
    order,
    start_of,
    task_tag,
    wanted_gpus,
)
from jobs.kinds.task.settings import DECISION, FOLDER, MOVE, STOP, TUNNEL
from jobs.submitter.confirming import confirm
from jobs.submitter.placing import Seat, Sight, consider, decide
from jobs.submitter.preferring import prefer_soonest
from jobs.submitter.telling import tell

ALLOWED = "box_images"
"""Data name of the ids of the images that a node's operator allows in its boxes, with blanks between."""


class TaskCluster:
    """One session with HDFS and YARN. Errors are HadoopError, and JobError for what can never work."""

    def __init__(self, submitter: Submitter, access: InfoAccess, client: InfoClient) -> None:
        """`client` reads the values of nodes, and `access` is what runners have of the service."""
        self._submitter = submitter
        self._access = access
        self._client = client
        self._asked: dict[str, Mapping[str, Any]] = {}
        self._manager = ResourceManager(resourcemanager_addresses(submitter.conf_dir), submitter.user)

    def is_up(self) -> bool:
        """Whether YARN and HDFS answer and a node takes work, so that what they refuse is refused for good."""
        try:
            self._submitter.filesystem.exists("/")
            return bool(self._manager.running_nodes())
        except HadoopError:
            return False

    def find(self, task_id: str) -> Application | None:
        """The application that was submitted last for a task, None when there is none."""
        found = self._submitter.yarn.tagged(task_tag(task_id))
        return found[-1] if found else None

    def application(self, application_id: str) -> Application:
        """One application; UnknownApplication when YARN does not know it."""
        return self._submitter.yarn.application(application_id)

    def submit(
        self,
        task: Task,
        archive: Path | None,
        starts_before: int = 0,
        bound_to: Sequence[str] = (),
        may_wait: bool = True,
    ) -> str:
        """Submit a task with its files, after so many starts in applications before; the id of its application.

        With `bound_to` the application is for these nodes alone. If it `may_wait`, it may be for the soonest alone.
        YARN gets it only if the service has its database still.
        """
        nodes = self._submitter.yarn.running_nodes()
        laid = self._laid(task)
        images = self._image_nodes(task, laid)
        unfit, lacking = self._unfit(task, laid, nodes), self._lacking(task)
        asked = order(task.spec, task.task_id, archive, nodes, None, self._access, images, laid, unfit, lacking)
        asked = further(asked, starts_before, bound_to)
        asked = self._preferring(asked, laid, nodes, task.spec.program, may_wait and not bound_to)
        check(self._submitter, asked)
        asked = replace(asked, token=self._client.task_token(task.task_id))
        application_id = self._submitter.submit(asked, lambda: confirm(self._client, task))
        self._asked[application_id] = asked.settings
        return application_id

    def _laid(self, task: Task) -> Laid | None:
        if not task.spec.env or task.spec.image:  # of both, the order says that they do not go together
            return None
        find = environment_image.find if has_own_files(task.spec) else laying.find
        return find(self._submitter.filesystem, task.spec.env)

    def _preferring(
        self, asked: Order, laid: Laid | None, nodes: Sequence[str], program: str | None, may_wait: bool
    ) -> Order:
        """The order with the nodes on which it would be done soonest, where that depends on who has its environment."""
        if laid is None or laid.manifest is None:
            return asked
        try:
            ready = {
                node: one.seconds for node, one in find_all_ready(self._client, laid.manifest.parts, nodes).items()
            }
            sight = self.look()
        except (HadoopError, JobError, InfoError):  # it runs anywhere
            return asked
        ranking = sight.order_of(program)
        return prefer_soonest(asked, _consider(asked.master, sight, ranking, ready), ranking, ready, may_wait)

    def _unfit(self, task: Task, laid: Laid | None, nodes: Sequence[str]) -> Unfit:
        if not (laid and task.spec.env):
            return ALL_FIT
        return judge(self._submitter.filesystem, self._client, task.spec.env, laid.requires, nodes)

    def _lacking(self, task: Task, rooms: Sequence[NodeRoom] | None = None) -> dict[str, str]:
        if not task.spec.gpus:
            return {}
        found = self._manager.rooms() if rooms is None else rooms
        counted = {room.node_name: room.total.get(GPU) for room in found}
        return find_lacking(self._client, wanted_gpus(task.spec), counted)

    def _image_nodes(self, task: Task, laid: Laid | None) -> set[str] | None:
        """The nodes that allow the image of a task; None without one, or where no node reports what it allows.

        What an agent said that is silent now counts, too: the broker of the node has the last word.
        """
        image = image_id(task.spec, laid)
        if image is None:
            return None
        try:
            told = self._client.data(ALLOWED)
        except NotFound:
            return None
        if not told:
            return None
        return {one.node_name for one in told if image in (one.data_value or "").split()}

    def note_decision(self, task: Task, application: Application) -> None:
        """Keep in HDFS why a start of a task runs where it runs."""
        sight = self.look()
        told = self._told(application.application_id)
        asked = needs(task.spec, told["hosts"]) if "hosts" in told else self._needs(task, sight)
        seat = Seat(
            task_id=task.task_id,
            node_name=application.host,
            attempt=start_of(application),
            memory_mb=asked.memory_mb,
            vcores=asked.vcores,
            hosts=(is_bound(application) and told.get("bound_to")) or asked.hosts,
            prefers=told.get("prefers", ()),
            ready_seconds=told.get("ready_seconds", {}),
            has_ended=application.has_ended,
            resources=asked.resources,
        )
        known = judging_values(self._client, task.spec.program)
        decision = decide(seat, sight.rooms, sight.order_of(task.spec.program), time.time(), known)
        filesystem = self._submitter.filesystem
        place = f"{owners_folder(filesystem)}/{FOLDER}/{task.task_id}"
        filesystem.make_folder(place, mode=0o700)
        content = json.dumps(answer_of(decision)).encode()
        filesystem.write(f"{place}/{DECISION}.{start_of(application)}", content, mode=0o600)

    def _needs(self, task: Task, sight: Sight) -> MasterNeeds:
        running, laid = [room.node_name for room in sight.rooms], self._laid(task)
        return order(
            task.spec,
            task.task_id,
            None,
            running,
            image_nodes=self._image_nodes(task, laid),
            environment=laid,
            unfit=self._unfit(task, laid, running),
            lacking=self._lacking(task, sight.rooms),
        ).master

    def look(self) -> Sight:
        """What YARN says of its nodes now."""
        return Sight(self._manager.rooms(), self._manager.orders())

    def nodes_for(self, task: Task, sight: Sight) -> list[ConsideredNode]:
        """The nodes that take work: which may run a task, which have room for it, and their scores for its program."""
        return _consider(self._needs(task, sight), sight, sight.own_order_of(task.spec.program))

    def take_away(self, task_id: str) -> None:
        """Delete what a submitter that was killed has laid out for a task."""
        filesystem = self._submitter.filesystem
        folder = owners_folder(filesystem)
        for entry in filesystem.entries(folder):
            if JOB_ID.fullmatch(entry.name) and self._task_of(f"{folder}/{entry.name}/job.json") == task_id:
                filesystem.delete(f"{folder}/{entry.name}")

    def _task_of(self, order_file: str) -> str | None:
        """The task that an application was laid out for, None for a job of another kind, or one half laid out."""
        return self._settings(order_file).get("task_id")

    def _told(self, application_id: str) -> Mapping[str, Any]:
        """What the runner of an application was told; the file goes with it, and what is remembered with us."""
        return self._asked.get(application_id) or self._settings(f"{self._submitter.staging(application_id)}/job.json")

    def _settings(self, order_file: str) -> dict[str, Any]:
        """What the runner or master of an application was told, empty where the file does not say or is gone."""
        if not self._submitter.filesystem.exists(order_file):
            return {}
        try:
            return dict(json.loads(self._submitter.filesystem.read(order_file))["settings"])
        except (ValueError, KeyError, TypeError):
            return {}

    def forget(self, task_id: str) -> None:
        """Delete what a task has left in HDFS but its output: what it printed and why it ran where it ran."""
        if not TASK_ID.fullmatch(task_id):
            raise HadoopError(f"{task_id!r} is no id of a task")
        filesystem = self._submitter.filesystem
        filesystem.delete(f"{owners_folder(filesystem)}/{FOLDER}/{task_id}")

    def ask_to_stop(self, application_id: str) -> None:
        """Have the runner of a task end its program, which has STOP_SECONDS for that."""
        tell(self._submitter.filesystem, self._submitter.staging(application_id), STOP)

    def ask_to_move(self, application_id: str) -> None:
        """Have the runner of a task end its program, so that the task goes on elsewhere."""
        tell(self._submitter.filesystem, self._submitter.staging(application_id), MOVE)

    def call_for_tunnels(self, application_id: str) -> None:
        """Have the runner of a task join the tunnels that wait for it; HadoopError when it does not hear."""
        tell(self._submitter.filesystem, self._submitter.staging(application_id), TUNNEL)

    def has_begun(self, application: Application) -> bool:
        """Whether YARN has given the current attempt of an application a node."""
        started = self._manager.started_masters(application.application_id)
        return any(attempt_of(container_id) >= application.attempt for container_id, _ in started)

    def alive(self) -> list[Application]:
        """The applications of tasks and jobs that have not ended."""
        return self._submitter.yarn.alive()

    def kill(self, application_id: str, why: str = "") -> None:
        """End an application; its diagnostics tell why."""
        self._submitter.yarn.kill(application_id, why)

    def record(self, application_id: str) -> tuple[Mapping[str, Any], str]:
        """The section and the last words of the record that a runner has left, both empty without one."""
        try:
            found = job_record.load(self._submitter.filesystem, application_id)
        except JobError:
            return {}, ""
        return (found.status.section or {}, found.said) if found else ({}, "")

    def clean(self, application_id: str) -> None:
        """Take the files of an application that has ended away."""
        self._asked.pop(application_id, None)
        self._submitter.filesystem.delete(self._submitter.staging(application_id))


def _consider(
    asked: MasterNeeds, sight: Sight, order: NodeOrder | None, ready_seconds: Mapping[str, float] | None = None
) -> list[ConsideredNode]:
    """What the nodes that take work are to a task that has none yet."""
    seat = Seat(
        task_id="",
        node_name="",
        attempt=0,
        memory_mb=asked.memory_mb,
        vcores=asked.vcores,
        hosts=asked.hosts,
        ready_seconds=ready_seconds or {},
        resources=asked.resources,
    )
    return consider(seat, [room for room in sight.rooms if not room.label], order)


def judging_values(client: InfoClient, program: str | None) -> list[Datum]:
    """What nodes are judged by for a program, none if the service does not know how the plug-in judges them."""
    names: set[str] = set()
    for one in dict.fromkeys((None, program)):
        with suppress(NotFound, InvalidInput):
            names |= client.explain(one).data_names
    try:
        return _values(client.data_many(sorted(names)))
    except NotFound:  # one of them is not registered, as the speed of a program that has never succeeded
        found: dict[str, list[Datum]] = {}
        for name in sorted(names):
            with suppress(NotFound):
                found[name] = client.data(name)
        return _values(found)


def _values(by_name: Mapping[str, list[Datum]]) -> list[Datum]:
    return [one for rows in by_name.values() for one in rows]
