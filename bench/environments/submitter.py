"""`python -m bench.environments.submitter CONF JARS USER`: speaks to HDFS and YARN for a bench, which has no JVM.

It takes a JSON list [CALL, WORD, ...] on each line, and answers with one line of JSON. Applications have no master but
the program itself, which never registers: YARN calls them failed, and what they have noted tells whether they are.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from hadoop.client import jvm
from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import HadoopHome
from hadoop.client.yarn import Launch, Where, Yarn
from jobs.application.environments.laid import find
from jobs.application.package import code_zip

LOOK_SECONDS = 0.05


class Calls:
    """Each method is a call."""

    def __init__(self) -> None:
        self._filesystem, self._yarn = FileSystem(), Yarn()

    def put_code(self, path: str) -> None:
        """What containers have on PYTHONPATH."""
        self._filesystem.write(path, code_zip())

    def upload(self, local: str, path: str) -> None:
        """Copy a file of this machine."""
        self._filesystem.upload(Path(local), path)

    def download(self, path: str, local: str) -> None:
        """Copy a file to this machine."""
        self._filesystem.download(path, Path(local))

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

    def follow(self, application_id: str) -> str:
        """Wait for the end; what YARN says of it."""
        while not (found := self._yarn.application(application_id)).has_ended:
            time.sleep(LOOK_SECONDS)
        return found.diagnostics


def main(conf: str, jars: str, user: str) -> None:
    """Until there are no more lines."""
    jvm.start(HadoopHome(Path(conf), Path(jars), user))
    calls = Calls()
    for line in sys.stdin:
        name, *words = json.loads(line)
        print(json.dumps(getattr(calls, name)(*words)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
