"""What containers have printed, as YARN keeps it in HDFS after an application's end where it collects logs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from hadoop.client.jvm import configuration, java, java_errors

_COLLECTION = "org.apache.hadoop.yarn.logaggregation"
_STREAM, _LENGTH, _CONTENT = b"LogType:", b"LogLength:", b"LogContents:"
MOST_BYTES = 64 * 1024 * 1024
"""What is read of one log: its end."""
LATER = "YARN collects logs some seconds after the end: call again"


@dataclass(frozen=True)
class CollectedLog:
    """The end of what a container has printed to a stream, and how many bytes it has printed in all."""

    container_id: str
    stream: str
    content: bytes
    length: int


class CollectedLogs:
    """The logs of one ended application; HadoopError when YARN has collected none, or its user may not read them."""

    def __init__(self, application_id: str, owner: str) -> None:
        self._doing = f"reading the logs of {application_id} that YARN has collected"
        with java_errors(self._doing, LATER):
            self._application = java("org.apache.hadoop.yarn.api.records.ApplicationId").fromString(application_id)
            factory = java(f"{_COLLECTION}.filecontroller.LogAggregationFileControllerFactory")(configuration())
            self._owner, self._controller = owner, factory.getFileControllerForRead(self._application, owner)

    def read(self, containers: Iterable[str], streams: Sequence[str]) -> Iterator[CollectedLog]:
        """These streams of these containers, one container after another; what is not there is left out."""
        with tempfile.NamedTemporaryFile() as file:
            for container_id in containers:
                file.seek(0)
                file.truncate()
                with java_errors(self._doing, LATER):
                    self._write(container_id, streams, Path(file.name))
                yield from parse_logs(container_id, file)

    def _write(self, container_id: str, streams: Sequence[str], file: Path) -> None:
        request: Any = java(f"{_COLLECTION}.ContainerLogsRequest")()
        request.setAppId(self._application)
        request.setAppOwner(self._owner)
        request.setContainerId(container_id)
        request.setLogTypes(java("java.util.HashSet")(java("java.util.Arrays").asList(list(streams))))
        request.setBytes(-MOST_BYTES)
        written = java("java.io.FileOutputStream")(str(file))
        try:
            self._controller.readAggregatedLogs(request, written)
        finally:
            written.close()


def parse_logs(container_id: str, file: IO[bytes]) -> Iterator[CollectedLog]:
    r"""The logs of a container, as Hadoop writes them to a file.

    >>> from io import BytesIO
    >>> said = b"Container: c on a_8041\n===\nLogType:stdout\nLogLength:3\nLogContents:\nhi\n\nEnd of LogType"
    >>> list(parse_logs("c", BytesIO(said)))
    [CollectedLog(container_id='c', stream='stdout', content=b'hi\n', length=3)]
    """
    stream, length = "", 0
    for line in iter(file.readline, b""):
        if line.startswith(_STREAM):
            stream = line.removeprefix(_STREAM).strip().decode()
        elif line.startswith(_LENGTH):
            length = int(line.removeprefix(_LENGTH))
        elif line.startswith(_CONTENT):
            yield CollectedLog(container_id, stream, file.read(min(length, MOST_BYTES)), length)
