"""What a run was asked for, kept in its output: with this it can be submitted again as it was.

`run.json` has the settings and the job's options, without what is secret; `files` has what was laid beside the program.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from hadoop.client.filesystem import FileSystem
from jobs.application.job_spec import JobOptions, JobSpec
from jobs.application.package import TAKEN
from jobs.errors import JobError
from jobs.kinds.train.settings import TrainSettings

RUN, FILES, REPORT = "run.json", "files", "report.json"
MODE = 0o640


@dataclass(frozen=True)
class Asked:
    """By the job that trained last; `settings` has names of files, and `argv` is as on the nodes."""

    job_id: str
    settings: TrainSettings
    options: JobOptions


def keep(filesystem: FileSystem, spec: JobSpec, settings: TrainSettings) -> None:
    """Put it into the output; files that lie there already are not copied again."""
    for name in settings.files:
        _keep_file(filesystem, f"{spec.staging}/{name}", f"{settings.output}/{FILES}/{name}")
    options = {one.name: getattr(spec, one.name) for one in fields(JobOptions)}
    told = {"job_id": spec.job_id, "settings": asdict(settings), "options": options}
    run = f"{settings.output}/{RUN}"
    filesystem.write(f"{run}.new", json.dumps(told, indent=1).encode(), mode=MODE)
    filesystem.rename(f"{run}.new", run, overwrite=True)


def read(filesystem: FileSystem, output: str) -> Asked:
    """What the last run into an output was asked for; JobError when it is not there, or cannot be read."""
    name = f"{output}/{RUN}"
    if not filesystem.exists(name):
        raise JobError(
            f"{output} holds no {RUN}", remedy="is it the output of a training run? `nodewise train submit` begins one"
        )
    try:
        told = json.loads(filesystem.read(name))
        settings = TrainSettings.from_json(told["settings"])
        asked = Asked(str(told["job_id"]), settings, JobOptions.from_json(told["options"]))
        if not settings.argv or any(_is_strange(one) for one in settings.files):
            raise ValueError("it names no program, or no names of files")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise JobError(
            f"{name} does not tell what a run was asked for: {error}",
            remedy="`nodewise train submit` with the same --output goes on from the newest checkpoint",
        ) from error
    return asked


def check_unfinished(filesystem: FileSystem, output: str, asked: Asked) -> None:
    """JobError when the last run into the output has done all its steps."""
    name = f"{output}/{REPORT}"
    if not filesystem.exists(name):
        return
    try:
        report = json.loads(filesystem.read(name))
        is_done = report.get("job_id") == asked.job_id and not report.get("stopped")
    except (ValueError, AttributeError):
        return
    if is_done:
        raise JobError(
            f"{asked.job_id} has done all {report.get('steps')} steps of the run in {output}",
            remedy="for more epochs, submit the changed program with the same --output: it goes on from there",
        )


def fetch(filesystem: FileSystem, output: str, files: Mapping[str, Path]) -> None:
    """Copy the files, by name, to these places on this machine."""
    for name, local in files.items():
        filesystem.download(f"{output}/{FILES}/{name}", local)


def _keep_file(filesystem: FileSystem, source: str, target: str) -> None:
    if filesystem.exists(target) and filesystem.checksum(target) == filesystem.checksum(source):
        return
    draft = f"{target}.new"
    filesystem.delete(draft)
    filesystem.make_folder(target.rpartition("/")[0])
    filesystem.copy(source, draft, mode=MODE)
    filesystem.rename(draft, target, overwrite=True)


def _is_strange(name: str) -> bool:
    """Whether it would not lie beside the program."""
    return Path(name).name != name or name in TAKEN
