"""What stays of a job in its owner's folder, whatever its kind: its containers, and what its master said last."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from hadoop.client.filesystem import FileSystem
from hadoop.client.yarn import Application
from hadoop.errors import HadoopError
from hadoop.rest.told import tell_end
from infosvc.wire.fields import PROGRAM_NAME
from jobs.application.status import JobStatus
from jobs.division import decision_store
from jobs.errors import JobError

FOLDER = "records"
UNDER_WAY = ("waiting", "starting", "working")
"""States of nodes that no node of a job that has ended is in."""
KIND_TAG = "kind="


class Files(Protocol):
    """The part of HDFS that a reader of records needs."""

    def home(self) -> Any: ...

    def exists(self, path: str) -> bool: ...

    def read(self, path: str) -> bytes: ...


@dataclass(frozen=True)
class JobRecord:
    """The last status of a job, and the sentence with which it ended; "" before that."""

    status: JobStatus
    said: str = ""

    def with_end(self, application: Application) -> JobRecord:
        """The record with YARN's word on the end of the job: a master that is killed does not hear of it."""
        if not application.has_ended or application.final == "SUCCEEDED":
            return self
        nodes = (replace(one, state="ended") if one.state in UNDER_WAY else one for one in self.status.nodes)
        status = replace(self.status, state=application.final.lower(), seconds_left=None, nodes=tuple(nodes))
        return JobRecord(status, self.said or tell_end(application.diagnostics))

    def to_bytes(self) -> bytes:
        """As it lies in HDFS."""
        return json.dumps(self.status.to_json() | {"said": self.said}, indent=1).encode()

    @classmethod
    def from_bytes(cls, content: bytes, where: str) -> JobRecord:
        """Inverse of `to_bytes`; JobError names the file at `where` when it is not a record."""
        try:
            body = json.loads(content)
            return cls(JobStatus.from_json(body), str(body.get("said", "")))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise JobError(f"{where} is not a record of a job ({type(error).__name__}: {error})") from None


def keep(filesystem: FileSystem, owners_folder: str, record: JobRecord) -> None:
    """Put a record where it is found whatever becomes of the job; what cannot be written now is only told."""
    try:
        decision_store.keep(filesystem, owners_folder, record.status.job_id, record.to_bytes(), FOLDER)
    except HadoopError as error:
        print(f"the record of {record.status.job_id} was not kept: {error}", flush=True)


def load(files: Files, job_id: str) -> JobRecord | None:
    """What is kept of a job, None when there is nothing; HadoopError or JobError when it cannot be read."""
    where = f"{files.home()}/.nodewise/{FOLDER}/{job_id}.json"
    return JobRecord.from_bytes(files.read(where), where) if files.exists(where) else None


def kind_tag(kind: str) -> str:
    """The tag by which YARN keeps the kind of a job."""
    return KIND_TAG + kind


def kind_of(tagged: Iterable[str]) -> str:
    """Inverse of `kind_tag`; "" for a job that was submitted before there was one."""
    return next((tag.removeprefix(KIND_TAG) for tag in tagged if tag.startswith(KIND_TAG)), "")


def program_tags(program: str | None) -> list[str]:
    """The tag by which YARN's plug-in knows whose order of nodes a job wants; JobError when it can be no name.

    >>> program_tags("alexnet.v2")
    ['program:alexnet.v2']
    """
    if program is None:
        return []
    if not PROGRAM_NAME.fullmatch(program):
        raise JobError(f"--program {program!r} is no name", remedy="give 1 to 64 small letters, digits, dots, _ or -")
    return [f"program:{program}"]
