"""What containers have printed, as YARN keeps it in HDFS after an application's end where it collects logs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hadoop.client.jvm import configuration, java, java_errors

_COLLECTION = "org.apache.hadoop.yarn.logaggregation"
_CONTAINER = re.compile(rb"Container: (\S+) on ")
_STREAM, _LENGTH, _CONTENT = b"LogType:", b"LogLength:", b"LogContents:"
MOST_BYTES = 64 * 1024 * 1024
"""What is read of one log: its end."""


@dataclass(frozen=True)
class CollectedLog:
    """What a container has printed to a stream."""

    container_id: str
    stream: str
    content: bytes


def write_logs(application_id: str, owner: str, streams: Sequence[str], file: Path) -> None:
    """Write these streams of all containers of an ended application to a file, as `parse_logs` reads it.

    HadoopError when YARN has collected none: it does so some seconds after the end, and only where it is told to.
    """
    with java_errors(
        f"reading the logs of {application_id} that YARN has collected", "YARN collects them after the end"
    ):
        application = java("org.apache.hadoop.yarn.api.records.ApplicationId").fromString(application_id)
        factory = java(f"{_COLLECTION}.filecontroller.LogAggregationFileControllerFactory")(configuration())
        request = java(f"{_COLLECTION}.ContainerLogsRequest")()
        request.setAppId(application)
        request.setAppOwner(owner)
        request.setLogTypes(java("java.util.HashSet")(java("java.util.Arrays").asList(list(streams))))
        request.setBytes(-MOST_BYTES)
        written = java("java.io.FileOutputStream")(str(file))
        try:
            factory.getFileControllerForRead(application, owner).readAggregatedLogs(request, written)
        finally:
            written.close()


def parse_logs(file: IO[bytes]) -> Iterator[CollectedLog]:
    r"""The logs of a file that `write_logs` has written.

    >>> from io import BytesIO
    >>> said = b"Container: container_1 on a_8041\n===\nLogType:stdout\nLogLength:3\nLogContents:\nhi\n\nEnd of LogType"
    >>> list(parse_logs(BytesIO(said)))
    [CollectedLog(container_id='container_1', stream='stdout', content=b'hi\n')]
    """
    container_id, stream, length = "", "", 0
    for line in iter(file.readline, b""):
        if found := _CONTAINER.match(line):
            container_id = found[1].decode()
        elif line.startswith(_STREAM):
            stream = line.removeprefix(_STREAM).strip().decode()
        elif line.startswith(_LENGTH):
            length = int(line.removeprefix(_LENGTH))
        elif line.startswith(_CONTENT):
            yield CollectedLog(container_id, stream, file.read(min(length, MOST_BYTES)))
