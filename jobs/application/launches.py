"""How a worker is started: what is laid beside it, and what its environment tells it."""

from __future__ import annotations

import json

from hadoop.client.filesystem import FileSystem
from hadoop.client.yarn import Launch
from jobs.application.environment import ARCHIVE_NAME, python_in
from jobs.application.settings import JobSettings, WorkerSettings

CODE, SETTINGS = "code.zip", "worker.json"


class Launches:
    """Writes once what all workers need; then `of` says how to start one on a node."""

    def __init__(self, filesystem: FileSystem, settings: JobSettings) -> None:
        self._filesystem = filesystem
        self._settings = settings
        self._master = f"{settings.staging}/master.json"

    def publish(self, address: str) -> None:
        """Say where the application master is now (http://host:port), and lay the workers' settings out.

        A worker reads the file again when the application master that it knows does not answer.
        """
        settings = self._settings
        processes = settings.vcores
        worker = WorkerSettings(
            job_id=settings.job_id,
            master=self._master,
            token=settings.token,
            engine=settings.engine,
            batch=settings.batch,
            processes=processes,
            threads=1,
            model=settings.model,
            graph=settings.graph,
            weights=settings.weights,
            preparation=settings.preparation,
            labels=settings.labels,
            picture_seconds=settings.picture_seconds,
        )
        stored = f"{settings.staging}/{SETTINGS}"
        if not self._filesystem.exists(stored):  # YARN refuses a file that is newer than a container that runs
            self._put(stored, worker.to_bytes())
        self._put(self._master, json.dumps({"address": address}).encode())

    def of(self, node_name: str) -> Launch:
        """The worker of one node."""
        settings = self._settings
        names = [CODE, SETTINGS, *settings.files]
        python = python_in() if settings.environment else settings.worker_python
        return Launch(
            argv=[python, "-m", "jobs.worker", SETTINGS],
            environment=self._environment(node_name),
            files={name: f"{settings.staging}/{name}" for name in names},
            archives={ARCHIVE_NAME: settings.environment} if settings.environment else {},
            memory_mb=settings.memory_mb,
            vcores=settings.vcores,
        )

    def _put(self, name: str, content: bytes) -> None:
        """The whole file or none, for this user alone: one of them holds the token."""
        self._filesystem.write(f"{name}.new", content, mode=0o600)
        self._filesystem.rename(f"{name}.new", name, overwrite=True)

    def _environment(self, node_name: str) -> dict[str, str]:
        return {
            "NODE_NAME": node_name,
            "PYTHONPATH": CODE,
            "PYTHONUNBUFFERED": "1",
            "HADOOP_CONF_DIR": self._settings.conf_dir,
            "HADOOP_USER_NAME": self._settings.user,
            "OMP_NUM_THREADS": "1",
            "MXNET_CPU_WORKER_NTHREADS": "1",
            # MXNet imports distutils, and setuptools' stand-in for it would take a third of a second.
            "SETUPTOOLS_USE_DISTUTILS": "stdlib",
        }
