"""What a user asks for when a program is to be run once, as an order for YARN."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path, PurePosixPath

import boxes
from boxes.box import BoxError
from boxes.gpus.cards import Wanted
from hadoop.client.yarn import Application
from infosvc.wire.task_spec import TaskSpec
from jobs.application.environments.laid import Laid, shared
from jobs.application.environments.unfit import ALL_FIT, Unfit
from jobs.application.job_spec import JobOptions
from jobs.application.submit import InfoAccess, MasterNeeds, Order, Submitter
from jobs.division.gpu_nodes import GPU, leave_out_lacking
from jobs.errors import JobError
from jobs.kinds.task import image_store, input_data
from jobs.kinds.task.committing import check_free
from jobs.kinds.task.settings import BOUND_SECONDS, ENVIRONMENT, FILES, TaskSettings

RUNNER_MEMORY_MB = 384
"""What the runner itself needs: Python with a JVM, the program's keeper, and YARN's shells.

Measured: 257 MB while a program sleeps, at most 281 MB while it prints 300 MB and leaves 600 MB; the rest is for Java,
whose heap may grow.
"""
LEAST_MEMORY_MB = 512
"""Of any application master, as its options have it."""
TAG, STARTS, BOUND = "task:", "starts:", "bound"


def check(submitter: Submitter, order: Order) -> None:
    """Find what cannot work before anything is submitted; JobError or HadoopError."""
    submitter.check(order)
    if image := order.settings["image"]:
        image_store.check_there(submitter.filesystem, image)
    input_data.check(submitter.filesystem, order.settings["data"])
    output = order.settings["output"]
    if output and not order.settings["starts_before"]:  # an earlier start may have put it there
        check_free(submitter.filesystem, output)


def order(
    spec: TaskSpec,
    task_id: str,
    archive: Path | None,
    running_nodes: Sequence[str],
    options: JobOptions | None = None,
    access: InfoAccess | None = None,
    image_nodes: Collection[str] | None = None,
    environment: Laid | None = None,
    unfit: Unfit = ALL_FIT,
    lacking: Mapping[str, str] | None = None,
) -> Order:
    """A task as it is submitted; JobError when no node that runs may have it, or its files are not here.

    `archive` is a tar file of this machine with the user's files, `running_nodes` are those that accept work now. Of
    `options` counts what the specification does not say. With a token in `access`, the program can find it: give none.
    `image_nodes` are those that allow its image, None if that is not known. `environment` is what its `env` stands for.
    `unfit` are the nodes that cannot run that, and `lacking` those without the GPUs that it wants, with the reasons.
    """
    if archive and not archive.is_file():
        raise JobError(f"{archive} is not a file of this machine", remedy="send the task's files again")
    laid = environment or Laid()
    settings = _settings(spec, task_id, archive is not None, laid)
    hosts = _hosts(spec, spec.image or laid.image, running_nodes, image_nodes, unfit, lacking or {})
    return Order(
        kind="task",
        name=spec.name or PurePosixPath(spec.argv[0]).name,
        settings=asdict(replace(settings, hosts=tuple(hosts))),
        options=replace(
            options or JobOptions(),
            queue=spec.queue,
            program=spec.program,
            attempts=spec.attempts,
            master_memory=None,
        ),
        access=access or InfoAccess(),
        uploads={FILES: archive} if archive else {},
        tags=[task_tag(task_id)],
        needs_service=False,
        priority=spec.priority,
        master=needs(spec, hosts, archive is not None, laid),
    )


def further(asked: Order, begun: int, bound_to: Sequence[str] = ()) -> Order:
    """A task as one more application of it, after others in which it was started so often.

    With `bound_to` it is for these nodes alone, all of which may run it.
    """
    if not begun:
        return asked
    settings = {**asked.settings, "starts_before": begun, "bound_to": tuple(bound_to)}
    asked = replace(asked, settings=settings, tags=[*asked.tags, f"{STARTS}{begun}"])
    if not bound_to:
        return asked
    return replace(asked, tags=[*asked.tags, BOUND], master=replace(asked.master, hosts=tuple(bound_to)))


def preferring(asked: Order, prefers: Sequence[str], ready_seconds: Mapping[str, float]) -> Order:
    """A task that YARN gives one of these nodes if it has room, and soon any other; none are named for no preference.

    `ready_seconds` is when each node would have its environment, to be told.
    """
    settings = {**asked.settings, "prefers": tuple(prefers), "ready_seconds": dict(ready_seconds)}
    return replace(asked, settings=settings, master=replace(asked.master, prefers=tuple(prefers)))


def waiting(asked: Order, seconds: float) -> Order:
    """A task that may use some nodes alone, as an application for those of them that it prefers.

    YARN knows no preference among nodes to which something is bound. After so many seconds without room there, at most
    BOUND_SECONDS, one more application may use all.
    """
    tag = f"{BOUND}:{math.ceil(min(seconds, BOUND_SECONDS))}"
    return replace(asked, tags=[*asked.tags, tag], master=replace(asked.master, hosts=asked.master.prefers))


def start_of(application: Application) -> int:
    """Which start of its task an application is at, counted over all of its applications; 0 before its own first."""
    return starts_until(application) if application.attempt else 0


def starts_until(application: Application) -> int:
    """How often a task has been started up to now, by its newest application."""
    return starts_before(application) + application.attempt


def starts_before(application: Application) -> int:
    """How often a task was started before this application of it."""
    return next((int(tag.removeprefix(STARTS)) for tag in application.tags if tag.startswith(STARTS)), 0)


def is_bound(application: Application) -> bool:
    """Whether an application is for fewer nodes than its task may use."""
    return patience_of(application) is not None


def patience_of(application: Application) -> float | None:
    """The seconds that an application waits for the nodes to which it is bound, None if it is not."""
    for tag in application.tags:
        name, _, seconds = tag.partition(":")
        if name == BOUND:
            return float(seconds or BOUND_SECONDS)
    return None


def task_tag(task_id: str) -> str:
    """The tag by which YARN keeps whose application this is."""
    return TAG + task_id


def tagged_task(tags: Iterable[str]) -> str:
    """The id of the task whose application has these tags, empty for none."""
    return next((tag.removeprefix(TAG) for tag in tags if tag.startswith(TAG)), "")


def image_id(spec: TaskSpec, laid: Laid | None = None) -> str | None:
    """The id of a task's image, without the name that people give it; else that of what its `env` stands for."""
    return spec.image.rpartition("@")[2] if spec.image else (laid and laid.image) or None


def has_own_files(spec: TaskSpec) -> bool:
    """Whether its program sees an image in place of the node's files; JobError for a box that there is not."""
    try:
        return not boxes.create(_box_name(spec)).shows_machine
    except BoxError as error:
        raise JobError(error.message, error.remedy) from error


def wanted_gpus(spec: TaskSpec) -> Wanted:
    """The GPUs that a task asks for, as nodes and cards are judged by."""
    return Wanted(spec.gpus, spec.gpu_model or "", spec.gpu_memory_mb or 0, spec.gpu_capability or "")


def needs(
    spec: TaskSpec, hosts: Sequence[str] = (), has_uploads: bool = False, laid: Laid | None = None
) -> MasterNeeds:
    """What the only container of a task needs, with the nodes that may have it, none for any."""
    laid = laid or Laid()
    return MasterNeeds(
        max(spec.memory_mb + RUNNER_MEMORY_MB, LEAST_MEMORY_MB),
        spec.vcores,
        {GPU: spec.gpus} if spec.gpus else {},
        hosts=hosts,
        has_uploads=has_uploads,
        archives={ENVIRONMENT: laid.archive} if laid.archive else {},
        shared=shared(laid.parts),
    )


def _settings(spec: TaskSpec, task_id: str, has_files: bool, laid: Laid) -> TaskSettings:
    return TaskSettings(
        task_id=task_id,
        argv=list(spec.argv),
        variables={**laid.variables, **spec.variables},
        has_files=has_files,
        memory_mb=spec.memory_mb,
        vcores=spec.vcores,
        output=_path(spec.output) if spec.output else None,
        seconds_at_most=spec.seconds_at_most,
        checkpoint=_path(spec.checkpoint) if spec.checkpoint else None,
        data=tuple(spec.data),
        box=_box(spec, laid),
        image=image_id(spec, laid),
        has_environment=bool(laid.archive),
        parts=laid.parts,
        devices=tuple(spec.devices),
        gpus=asdict(wanted_gpus(spec)) if spec.gpus else {},
    )


def _box(spec: TaskSpec, laid: Laid) -> str:
    name = _box_name(spec)
    if not has_own_files(spec):
        if spec.image:
            raise JobError(
                f"a box of kind {name} shows the node and no image", remedy="leave --image out, or use --box docker"
            )
        return name
    if spec.env and spec.image:
        raise JobError(
            f"a box of kind {name} has the Python of its image, and so of one environment",
            remedy="leave --env or --image out",
        )
    if not image_id(spec, laid):
        raise JobError(f"a box of kind {name} needs an image", remedy="name one by --image, or an environment by --env")
    return name


def _box_name(spec: TaskSpec) -> str:
    return spec.box or ("docker" if spec.image else "process")


def _hosts(
    spec: TaskSpec,
    image: str,
    running: Sequence[str],
    image_nodes: Collection[str] | None,
    unfit: Unfit,
    lacking: Mapping[str, str],
) -> list[str]:
    """The nodes that may have it, none for any."""
    if not spec.nodes and not spec.not_nodes and image_nodes is None and not unfit.reasons and not lacking:
        return []
    wanted = spec.nodes or running
    hosts = sorted((set(wanted) & set(running)) - set(spec.not_nodes))
    names = f" ({', '.join(spec.nodes)})" if spec.nodes else ""
    if not hosts:
        raise JobError(
            f"none of the nodes that may run it accepts work{names}",
            remedy="`nodewise cluster status` shows which nodes do",
        )
    if image_nodes is not None and not (hosts := sorted(set(hosts) & set(image_nodes))):
        raise JobError(
            f"none of the nodes that may run it allows the image {image}{names}",
            remedy="an operator allows it by a line in their /etc/nodewise/images",
        )
    return leave_out_lacking(unfit.leave_out(hosts), lacking, f"it asks for{names}")


def _path(folder: str) -> str:
    """A folder of HDFS without its slash at the end, so that a name can be made of it."""
    return folder.rstrip("/")
