"""What a user asks for when a program is to train on nodes, as an order for YARN."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from jobs.application.environments.laid import Laid, find_made
from jobs.application.job_spec import JobOptions
from jobs.application.package import check_python, with_uploads
from jobs.application.submit import InfoAccess, Order, Submitter
from jobs.errors import JobError
from jobs.kinds.train.registry.speeds import register
from jobs.kinds.train.settings import TrainSettings
from locality.program_names import training_speed_name

PACKAGES = ("hdfs-native",)
"""What starts a member needs it, to bring checkpoints to HDFS."""


@dataclass(frozen=True)
class TrainRequest:
    """A program whose loop is a Run of nodewise.learning.

    `files` are those of an earlier run, by name, whose settings go on; None where the settings name a user's files.
    """

    settings: TrainSettings
    options: JobOptions = field(default_factory=JobOptions)
    access: InfoAccess = field(default_factory=InfoAccess)
    files: Mapping[str, Path] | None = None


def check_words(settings: TrainSettings) -> None:
    """Find what cannot work whatever the cluster is; JobError."""
    _check_settings(settings)
    with_uploads(settings.argv, settings.files)


def check(submitter: Submitter, request: TrainRequest) -> Order:
    """Find what cannot work before anything is submitted; the job as it then is. JobError, HadoopError or InfoError."""
    _check_settings(request.settings)
    least, made = request.settings.least, order(submitter, request)
    nodes = submitter.check(made)
    if least > len(nodes):
        raise JobError(
            f"{least} members need {least} nodes, and only {len(nodes)} accept work", remedy="ask for fewer --members"
        )
    for tag in made.tags:
        for other in submitter.yarn.tagged(tag):
            if not other.has_ended:
                raise JobError(
                    f"{other.application_id} trains with the output {made.settings['output']} now",
                    remedy=f"name another --output, or end it first: nodewise train stop {other.application_id}",
                )
    return made


def order(submitter: Submitter, request: TrainRequest) -> Order:
    """The job as it is submitted; JobError when a file is not there, or two have one name."""
    argv, uploads = request.settings.argv, request.files
    if uploads is None:
        argv, uploads = with_uploads(argv, request.settings.files)
    env = request.settings.env
    laid = find_made(submitter.filesystem, env, PACKAGES) if env else Laid()
    settings = replace(
        request.settings,
        argv=argv,
        files=sorted(uploads),
        output=submitter.path(request.settings.output),
        parts=request.settings.parts or laid.parts,
    )
    return Order(
        kind="train",
        name=f"nodewise train {settings.script}",
        settings=asdict(settings),
        options=request.options,
        access=request.access,
        uploads=uploads,
        tags=[tag_of(settings.output)],
        prepare=lambda client: register(client, training_speed_name(settings.script)),
        needs_service=settings.capability is not None,
        env=env or "",
        requires=laid.requires,
        gpus=settings.wanted_gpus,
    )


def _check_settings(settings: TrainSettings) -> None:
    if not settings.output:
        raise JobError(
            "the run needs a folder in HDFS for its checkpoints", remedy="name one: --output hdfs:///out/run1"
        )
    settings.check_members()
    settings.check_sync()
    settings.check_devices()
    check_python(settings.worker_python, bool(settings.env or settings.parts))


def tag_of(output: str) -> str:
    """What YARN knows the runs by that have an output: it keeps no long tags.

    >>> tag_of("/out/run1")
    'training=ca862998cc7fbe74'
    """
    return f"training={hashlib.sha256(output.encode()).hexdigest()[:16]}"
