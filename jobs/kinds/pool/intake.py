"""What is looked at before a pool takes a job: all that would be refused of any job, and whether there is room.

A single picture in HDFS is looked at, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hadoop.client.listing import Listing
from hadoop.errors import Denied, HadoopError
from infosvc.wire.errors import AWAY
from jobs.application.coordinator import Attempt
from jobs.application.submit import FILES_OF_A_MB, MASTER_MEMORY_MB
from jobs.itemwork import submission
from jobs.itemwork.coordinator import ItemCoordinator
from jobs.kinds.pool.lives import SENTENCES
from jobs.kinds.pool.pooled_job import PooledJob
from jobs.kinds.pool.settings import PoolSettings
from jobs.kinds.pool.wishes import LEAST_WEIGHT, MOST_WEIGHT, JobWish, Refusal
from jobs.kinds.pool.workers import Workers


class Intake:
    """Every method raises Refusal. `sample` is a job as all of the pool are, which is never begun."""

    def __init__(self, attempt: Attempt, settings: PoolSettings, sample: ItemCoordinator, workers: Workers) -> None:
        self._attempt = attempt
        self._settings = settings
        self._sample = sample
        self._workers = workers

    def check(self, wish: JobWish, at_work: Sequence[PooledJob], notes: list[str]) -> tuple[JobWish, int]:
        """The job as it can be done: with paths without a scheme, and with the capability that decides; its files.

        What the user is to hear beside that is added to `notes`. It may wait for values of the capability.
        """
        if not LEAST_WEIGHT <= wish.weight <= MOST_WEIGHT:
            raise Refusal(f"--weight is {wish.weight:g}", f"it has to be from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}")
        nodes = self.check_workers()
        path = self._attempt.filesystem.path
        try:
            paths = {name: str(path(getattr(wish, name)).toUri().getPath()) for name in ("input", "output")}
        except HadoopError as error:
            raise Refusal(error.message, error.remedy) from None
        wish = msgspec.structs.replace(wish, **paths)
        self.check_room(wish, 0, at_work)  # before anything is waited for
        try:
            capability = self._choose(wish, nodes, notes)
            files = Listing(self._attempt.filesystem).summary(wish.input).files
        except SENTENCES as error:
            raise Refusal(error.message, error.remedy, _passes(error)) from None
        self.check_room(wish, files, at_work)
        return msgspec.structs.replace(wish, capability=capability), files

    def check_workers(self) -> Sequence[str]:
        """The nodes whose worker is ready."""
        if nodes := self._workers.ready():
            return nodes
        name = self._settings.name
        raise Refusal(f"no worker of the pool {name} is ready", f"`nodewise pool show {name}` tells why", True)

    def find_picture(self, name: str) -> tuple[str, int]:
        """The path of a picture in HDFS, without a scheme, and its bytes, if the pool's owner may read it.

        HadoopError when HDFS does not answer.
        """
        filesystem = self._attempt.filesystem
        try:
            path = str(filesystem.path(name).toUri().getPath())
        except HadoopError as error:
            raise Refusal(error.message, error.remedy) from None
        try:
            size = filesystem.size(path)
            if size is not None:
                filesystem.check_readable(path)
                return path, size
        except Denied as error:
            raise Refusal(error.message, error.remedy) from None
        raise Refusal(f"{path} is no file in HDFS", "a folder of pictures is for `nodewise job submit --pool`")

    def check_room(self, wish: JobWish, files: int, at_work: Sequence[PooledJob]) -> None:
        """Whether the pool can have one more job, of so many files, and no other one has the same output."""
        name = self._settings.name
        if len(at_work) >= self._settings.most_jobs:
            raise Refusal(
                f"the pool {name} is full: it works on {len(at_work)} jobs",
                "wait with --wait-for-pool, or bring up a pool with more --jobs",
                True,
            )
        if other := next((job for job in at_work if job.wish.output == wish.output), None):
            raise Refusal(f"{other.spec.job_id} writes to {wish.output} already", "choose another --output")
        self._check_memory(wish, files, at_work)

    def _choose(self, wish: JobWish, nodes: Sequence[str], notes: list[str]) -> str:
        """The capability that decides, once nothing stands against the job."""
        settings = type(self._sample.settings).from_json({**self._settings.job, **wish.settings()})
        submission.check_policies(settings)
        submission.check_paths(self._attempt.filesystem, settings, remedy="put there what is to be worked on")
        client, program, unit = self._attempt.client, settings.program, self._sample.unit
        seconds = wish.capability_wait
        found = submission.choose_capability(settings, program, client, nodes, seconds, notes.append, unit)
        return found.capability

    def _check_memory(self, wish: JobWish, files: int, at_work: Sequence[PooledJob]) -> None:
        """Whether the plan of a job fits beside those of the others."""
        name = self._settings.name
        room = ((self._attempt.spec.master_memory or MASTER_MEMORY_MB) - MASTER_MEMORY_MB) * FILES_OF_A_MB
        if files > room:
            raise Refusal(
                f"{wish.input} has {files:,} files, and the master of the pool {name} has memory for {room:,}",
                "bring up a pool with a larger --master-memory, or submit the job without --pool",
            )
        files += sum(job.files for job in at_work)
        if files > room:
            raise Refusal(
                f"the pool {name} is full: with this job its master would hold the plans of {files:,} files, "
                f"and it has memory for {room:,}",
                "wait with --wait-for-pool, or bring up a pool with a larger --master-memory",
                True,
            )


def _passes(error: Exception) -> bool:
    """Whether HDFS or the information service may only be away for a moment."""
    return isinstance(error, AWAY) or (isinstance(error, HadoopError) and not isinstance(error, Denied))
