"""How a worker is started: what is laid beside it, and what its environment tells it."""

from __future__ import annotations

from dataclasses import fields

from hadoop.client.filesystem import FileSystem
from hadoop.client.yarn import Launch
from jobs.application.coordinator import Seat
from jobs.application.environments.laid import python_argv, shared
from jobs.application.environments.store import ARCHIVE_NAME, python_in
from jobs.application.job_spec import JobSpec
from jobs.application.master import master_file, put
from jobs.images.rows_size import LARGEST_ROW
from jobs.kinds.classify.settings import ClassifySettings
from jobs.worker.settings import InferenceOptions, WorkerSettings
from jobs.worker.threads import ONE_THREAD

CODE, SETTINGS = "code.zip", "worker.json"


class Launches:
    """Writes once what all workers need; then `of` says how to start one on a node."""

    def __init__(
        self, filesystem: FileSystem, spec: JobSpec, settings: ClassifySettings, largest_row: int = LARGEST_ROW
    ) -> None:
        self._filesystem = filesystem
        self._spec = spec
        self._settings = settings
        self._largest_row = largest_row

    def publish(self) -> None:
        """Lay the workers' settings out, where no attempt has done so yet.

        YARN refuses a file that is newer than a container that runs.
        """
        stored = f"{self._spec.staging}/{SETTINGS}"
        if self._filesystem.exists(stored):
            return
        settings = self._settings
        worker = WorkerSettings(
            job_id=self._spec.job_id,
            master=master_file(self._spec),
            token=self._spec.token,
            processes=settings.vcores,
            threads=1,
            largest_row=self._largest_row,
            **{one.name: getattr(settings, one.name) for one in fields(InferenceOptions)},
        )
        put(self._filesystem, stored, worker.to_bytes())

    def of(self, seat: Seat) -> Launch:
        """The worker of one node."""
        settings = self._settings
        names = [CODE, SETTINGS, *settings.files]
        python = python_in() if settings.environment else settings.worker_python
        return Launch(
            argv=python_argv(
                settings.parts,
                python,
                ["-m", "jobs.worker", SETTINGS],
                settings.devices,
                settings.wanted_gpus,
                [*names, self._spec.conf_dir],
            ),
            environment=self._environment(seat.node_name),
            files={name: f"{self._spec.staging}/{name}" for name in names},
            archives={ARCHIVE_NAME: settings.environment} if settings.environment else {},
            shared=shared(settings.parts),
            memory_mb=settings.container_mb,
            vcores=settings.vcores,
        )

    def _environment(self, node_name: str) -> dict[str, str]:
        return {
            "NODE_NAME": node_name,
            "PYTHONPATH": CODE,
            "PYTHONUNBUFFERED": "1",
            "HADOOP_CONF_DIR": self._spec.conf_dir,
            "HADOOP_USER_NAME": self._spec.user,
            **ONE_THREAD,
            # MXNet imports distutils, and setuptools' stand-in for it would take a third of a second.
            "SETUPTOOLS_USE_DISTUTILS": "stdlib",
        }
