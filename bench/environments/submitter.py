"""`python -m bench.environments.submitter CONF JARS USER`: speaks to HDFS and YARN for a bench, which has no JVM.

It takes a JSON list [CALL, WORD, ...] on each line, and answers with one line of JSON. Applications have no master but
the program itself, which never registers: YARN calls them failed, and what they have noted tells whether they are.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.environments.scene import ENV
from environments.debian.lock import package_of
from environments.manifest import DEB, Manifest, Part
from environments.reference import Reference
from environments.store import PART, Store
from hadoop.client import jvm
from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import HadoopHome
from hadoop.client.yarn import Launch, Where, Yarn
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskState
from jobs.application.environments.laid import find
from jobs.application.submit import InfoAccess, Submitter
from jobs.code_archive import code_zip
from jobs.errors import JobError
from jobs.submitter.cluster import TaskCluster

LOOK_SECONDS = 0.05


class Calls:
    """Each method is a call."""

    def __init__(self, home: HadoopHome) -> None:
        self._home = home
        self._filesystem, self._yarn = FileSystem(), Yarn()
        self._asked: TaskCluster | None = None

    def put_code(self, path: str) -> None:
        """What containers have on PYTHONPATH."""
        self._filesystem.write(path, code_zip())

    def upload(self, local: str, path: str) -> None:
        """Copy a file of this machine."""
        self._filesystem.upload(Path(local), path)

    def download(self, path: str, local: str) -> None:
        """Copy a file to this machine."""
        self._filesystem.download(path, Path(local))

    def keep_packages(self, files: list[str]) -> None:
        """Have HDFS keep packages of Debian, so that an environment can be made from their lock without Debian.

        HDFS has packages by environments that have them: this one is never mounted, so any file is its part.
        """
        store, debs = Store(self._filesystem), [Path(one) for one in files]
        for deb in debs:
            store.put(deb, DEB)
        part = Part("/kept", store.put(debs[0], PART), debs[0].stat().st_size)
        store.add(Manifest("kept", "1", "", [part], packages=[package_of(deb) for deb in debs]), "kept")

    def find_parts(self, env: str) -> dict[str, str]:
        """The files in HDFS of an environment, by the folders that they become."""
        return dict(find(self._filesystem, env).parts)

    def freshen(self, path: str) -> None:
        """Give a file another time: for YARN it is another file then, which no node has."""
        self._filesystem.java.setTimes(self._filesystem.path(path), time.time_ns() // 1_000_000, -1)

    def submit(self, launch: dict[str, Any], host: str) -> dict[str, Any]:
        """Start a program on a node; the application, and when it was asked for."""
        application_id, context = self._yarn.new_application()
        asked_at = time.time()
        self._yarn.submit(context, "bench", Launch(**launch), self._filesystem, where=Where(master_hosts=[host]))
        return {"application_id": application_id, "asked_at": asked_at}

    def refuse(self, url: str, home: str, number: int, cuda: str) -> float:
        """Seconds until a task is refused whose environment needs a CUDA that no node has; its version 1 does not.

        The environment is a new one by its number.
        """
        newest = self._add_versions(f"unfit-{number}", cuda)
        cluster = self._cluster(url, Path(home))
        cluster.look()  # as each turn does
        task = Task("task_0123456789abcdef", "bench", "bench", TaskSpec(["true"], env=newest), TaskState.QUEUED, 0, 0)
        begun = time.monotonic()
        try:
            cluster.submit(task, None)
        except JobError as error:
            seconds = time.monotonic() - begun
            if f"take unfit-{number}@1" not in error.remedy:
                raise
            return seconds
        raise AssertionError("a task was submitted that no node can run")

    def follow(self, application_id: str) -> str:
        """Wait for the end; what YARN says of it."""
        while not (found := self._yarn.application(application_id)).has_ended:
            time.sleep(LOOK_SECONDS)
        return found.diagnostics

    def _add_versions(self, name: str, cuda: str) -> str:
        """Put three versions of an environment into HDFS, of which the newer two need a CUDA; the newest."""
        store = Store(self._filesystem)
        made = store.find(Reference.parse(ENV))
        for version in ("1", "2", "3"):
            requires = made.requires if version == "1" else replace(made.requires, cuda=cuda)
            store.add(replace(made, name=name, version=version, requires=requires), f"{name}-{version}")
        return f"{name}@3"

    def _cluster(self, url: str, home: Path) -> TaskCluster:
        """The cluster as a submitter has it, the same for all questions."""
        if not self._asked:
            token = (home / "service" / "token").read_text().strip()
            access = InfoAccess(url, token)
            submitter = Submitter(self._home, lambda line: print(line, file=sys.stderr))
            self._asked = TaskCluster(submitter, access, access.client())
        return self._asked


def main(conf: str, jars: str, user: str) -> None:
    """Until there are no more lines."""
    home = HadoopHome(Path(conf), Path(jars), user)
    jvm.start(home)
    calls = Calls(home)
    for line in sys.stdin:
        name, *words = json.loads(line)
        print(json.dumps(getattr(calls, name)(*words)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
