"""Files and folders of HDFS written over WebHDFS, without a JVM."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote, urlsplit

from hadoop.rest.masters import Addresses
from hadoop.rest.pages import AGAIN_SECONDS, IN_ADDRESSES, Limits, NotSent, Pages
from hadoop.rest.webhdfs import Refused, WebHdfs

LIMITS = Limits(connect=10.0, silence=60.0, seconds=3600.0, patience=60.0)
"""Of what is written a DataNode says nothing until it has it whole.

A NameNode takes over in less than the patience. DataNodes accept no connection for some seconds of it: the thread that
would do so waits for that NameNode, too, to write for somebody else.
"""


class WritableHdfs(WebHdfs):
    """The same HDFS, to be written to. Any number of threads may ask. Every method raises HadoopError."""

    def __init__(self, address: Addresses, user: str) -> None:
        super().__init__(address, user, LIMITS)

    def write(
        self, path: str, content: bytes | Iterable[bytes], overwrite: bool = False, block_bytes: int | None = None
    ) -> None:
        """Write a whole file, of all pieces if there are several; its folder comes by itself.

        While a DataNode cannot be reached, the NameNode is asked again for one: where to write to is all it has told.
        """
        give_up = time.monotonic() + self._limits.patience
        while True:
            try:
                return self._write_once(path, content, overwrite, block_bytes)
            except NotSent:
                if time.monotonic() + AGAIN_SECONDS > give_up:
                    raise
                time.sleep(AGAIN_SECONDS)

    def _write_once(
        self, path: str, content: bytes | Iterable[bytes], overwrite: bool, block_bytes: int | None
    ) -> None:
        more = {"blocksize": str(block_bytes)} if block_bytes else {}
        flag = "true" if overwrite else "false"
        told = self._ask_json(path, "CREATE", "PUT", overwrite=flag, noredirect="true", **more)
        where = urlsplit(str(told["Location"]))
        node = Pages("DataNode", f"{where.scheme}://{where.netloc}", self._limits)
        self._checked(node.send("PUT", quote(f"{where.path}?{where.query}", safe=IN_ADDRESSES), content), path)

    def make_folder(self, path: str) -> None:
        """Make a folder and its parents; nothing happens when it is there."""
        self._do(path, "MKDIRS")

    def rename(self, source: str, target: str) -> None:
        """Move a file or folder; into the target, if that is a folder.

        When the NameNode dies before it answers, another one is asked, which finds nothing at the source any more.
        """
        before = self.status(source)
        try:
            self._do(source, "RENAME", destination=target)
        except Refused:
            if not (before and self._is_at(before, target, PurePosixPath(source).name)):
                raise

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with all below it; nothing happens when there is none."""
        self._ask_json(path, "DELETE", "DELETE", recursive="true")

    def files_below(self, folder: str) -> Iterator[str]:
        """The path of each file below a folder, relative to it."""
        todo = [""]
        while todo:
            inner = todo.pop()
            for status in self.list_folder(str(PurePosixPath(folder) / inner)):
                name = str(PurePosixPath(inner) / status["pathSuffix"])
                if status["type"] == "DIRECTORY":
                    todo.append(name)
                else:
                    yield name

    def _is_at(self, moved: dict[str, Any], target: str, name: str) -> bool:
        """Whether a file or folder that was somewhere else is at the target now, or in it under its own name."""
        there = (self.status(path) for path in (target, str(PurePosixPath(target) / name)))
        return any(one["fileId"] == moved["fileId"] for one in there if one)

    def _do(self, path: str, operation: str, **more: str) -> None:
        if not self._ask_json(path, operation, "PUT", **more)["boolean"]:
            raise Refused(path, self._called, f"{operation} was not done")
