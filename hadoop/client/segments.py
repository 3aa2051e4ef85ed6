"""Appends that do not wait for a silent DataNode, as HDFS does: for 10 s, and 5 s more for each node of the file."""

from __future__ import annotations

import math
import threading
import time
from concurrent.futures import FIRST_COMPLETED, Future, wait
from queue import SimpleQueue

from hadoop.client.append_stream import AppendStream, children, make_up_replicas, take_away
from hadoop.client.datanodes import DataNode, find_answering, last_holders
from hadoop.client.filesystem import FileSystem
from hadoop.errors import HadoopError

SILENT_SECONDS = 2.0
"""How long a try may take before the next begins in another file."""
PAUSES = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Seconds before each further try where HDFS refused one: it may be starting."""
RENEW_SECONDS = 60.0
"""How long a file with fewer replicas than files have is written to: by then more nodes may answer."""
CLOSE_SECONDS = 30.0
"""How long the last file may take to close."""
TAKE_SECONDS = 5.0
"""How long HDFS may take to close each other one that is still open."""


class FolderGoneError(HadoopError):
    """The folder is no more, so that no other try can help."""


class Segments:
    """Numbered files in a folder that exists, for one thread at a time; every method raises HadoopError.

    What is appended stands whole in one of them; earlier ones may have it as well, or the beginning of it.
    """

    def __init__(self, filesystem: FileSystem, folder: str) -> None:
        self._filesystem = filesystem
        self._folder = folder
        self._count = 0
        self._newest = self._next()

    def append(self, content: bytes) -> None:
        """On return every reader sees it, and all nodes that hold its file have it on their disks."""
        if self._newest.is_to_renew():
            self._newest.leave()
            self._newest = self._next()
        tries = _Tries(content, self._newest)
        for pause in PAUSES:
            try:
                if tries.wait(SILENT_SECONDS):
                    break
                self._newest = self._next(silent=self._newest.path)
            except FolderGoneError:
                raise
            except HadoopError:
                time.sleep(pause)
                self._newest = self._next()
            tries.begin(self._newest)
        self._newest = tries.finish()

    def close(self) -> None:
        """Close the files as far as HDFS does so soon; they can be read all the same."""
        self._newest.leave(CLOSE_SECONDS)
        for name in children(self._filesystem, self._folder):
            try:
                take_away(self._filesystem, f"{self._folder}/{name}", TAKE_SECONDS)
            except HadoopError as error:
                print(f"a file is left open: {error}", flush=True)

    def _next(self, silent: str | None = None) -> _Segment:
        """Another file; not on the nodes that keep the `silent` one waiting, as far as that can be told."""
        self._count += 1
        return _Segment(self._filesystem, self._folder, f"{self._count:06d}", silent)


class _Tries:
    """To append the same to several files, until one of them has it."""

    def __init__(self, content: bytes, first: _Segment) -> None:
        self._content = content
        self._running: dict[Future[None], _Segment] = {}
        self._done: _Segment | None = None
        self.begin(first)

    def begin(self, segment: _Segment) -> None:
        """One more, beside those that have not failed."""
        self._running[segment.append(self._content)] = segment

    def wait(self, seconds: float | None) -> bool:
        """Whether one has it after so many seconds at most; HadoopError when one has failed, and none has it."""
        ended = wait(self._running, seconds, FIRST_COMPLETED).done
        self._done = next((self._running[one] for one in ended if not one.exception()), None)
        if self._done:
            return True
        for future in ended:
            self._running.pop(future).leave()
            future.result()
        return False

    def finish(self) -> _Segment:
        """The one that has it, however long that takes; HadoopError when all have failed. The others are left."""
        while not self._done:
            try:
                self.wait(None)
            except HadoopError:
                if not self._running:
                    raise
        for segment in self._running.values():
            if segment is not self._done:
                segment.leave()
        return self._done


class _Segment:
    """A file that a thread of its own makes and writes, as HDFS may hold that up for long."""

    def __init__(self, filesystem: FileSystem, folder: str, name: str, silent: str | None) -> None:
        self.path = f"{folder}/{name}"
        self._filesystem = filesystem
        self._folder = folder
        self._silent = silent
        self._asked: SimpleQueue[tuple[bytes, Future[None]] | None] = SimpleQueue()
        self._renew_at = math.inf
        self._thread = threading.Thread(target=self._run, name=f"segment {name}", daemon=True)
        self._thread.start()

    def append(self, content: bytes) -> Future[None]:
        """Done once HDFS has it."""
        future: Future[None] = Future()
        self._asked.put((content, future))
        return future

    def leave(self, seconds: float = 0.0) -> None:
        """Nothing more is appended, and it closes when it can; wait so long for that."""
        self._asked.put(None)
        self._thread.join(seconds)

    def is_to_renew(self) -> bool:
        """Whether it has had fewer replicas than files have for long enough."""
        return time.monotonic() > self._renew_at

    def _run(self) -> None:
        stream: AppendStream | None = None
        while asked := self._asked.get():
            content, future = asked
            try:
                stream = stream or self._open()
                stream.append(content)
            except Exception as error:
                future.set_exception(error)
            else:
                future.set_result(None)
        if stream:
            stream.abandon()
        if self._renew_at < math.inf:
            self._make_up_replicas()

    def _open(self) -> AppendStream:
        try:
            nodes = self._find_others(self._silent) if self._silent else []
            stream = AppendStream.create(self._filesystem, self.path, nodes)
        except HadoopError as error:
            if not self._filesystem.exists(self._folder):
                raise FolderGoneError(f"{self._folder} is no more") from error
            raise
        if nodes:
            self._renew_at = time.monotonic() + RENEW_SECONDS
        return stream

    def _make_up_replicas(self) -> None:
        try:
            make_up_replicas(self._filesystem, self.path)
        except HadoopError as error:
            print(f"a file has too few replicas: {error}", flush=True)

    def _find_others(self, silent: str) -> list[DataNode]:
        """Nodes of a file that is kept waiting which answer; if all do, two of them may not hear one another."""
        nodes = last_holders(self._filesystem, silent)
        answering = find_answering(nodes)
        return answering if len(answering) < len(nodes) else nodes[:-1]
