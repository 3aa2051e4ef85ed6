"""Whose eyes the board looks with: where Hadoop has Kerberos, callers see of HDFS and of jobs what they may see there.

A token of role user is that of the user of its name, as whom HDFS is asked (doAs); Hadoop lets only proxy users ask for
others. Through a service that is not one, users see their own jobs and the paths that are open to all. Callers who are
not users of Hadoop see those paths alone, and admins see as the service does. YARN has no such question, and tells
everybody of all applications, so whose a job is gets compared here.

Without Kerberos Hadoop believes any name, so nothing can be kept from anybody: all is seen as the service's user.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, TypeVar

from hadoop.errors import HadoopError
from hadoop.rest.webhdfs import NotProxy, Refused, WebHdfs

T = TypeVar("T")

SHOW_ONE = "show a token of role user with the name of a user of Hadoop (`nodewise token create NAME --role user`)"
OPEN_PATH = "have an admin open a folder to all (`nodewise serve --open-path`)"


class NotShown(HadoopError):
    """The caller may not see this."""


@dataclass(frozen=True)
class Eyes:
    """Those of a user of Hadoop, "" for a caller who has no user there, or those of the service itself (None)."""

    user: str | None

    def check_jobs(self) -> None:
        """NotShown to a caller who can have no jobs."""
        if self.user == "":
            raise NotShown("jobs are shown to their users, as Hadoop has Kerberos", remedy=SHOW_ONE)

    def may_know(self, only_for: str) -> bool:
        """Whether they may see what is for one user only, or for all if that is empty."""
        return self.user is None or only_for in ("", self.user)


SERVICE = Eyes(None)


class SeenHdfs:
    """HDFS as a caller sees it: open paths as the service does, all else as that user. Methods are those of WebHdfs.

    Every method raises HadoopError, NotShown for what the caller may not see. `own_name` is the service's own user.
    """

    def __init__(self, service: WebHdfs, user: str, open_paths: Sequence[str], own_name: Callable[[], str]) -> None:
        self._service = service
        self._user = user
        self._open = open_paths
        self._own_name = own_name

    def home(self) -> str:
        """The user's own folder."""
        return self._see("", WebHdfs.home)

    def exists(self, path: str) -> bool:
        """Whether a file or folder has this name."""
        return self._see(path, lambda hdfs: hdfs.exists(path))

    def read(self, path: str) -> bytes:
        """The content of a whole file."""
        return self._see(path, lambda hdfs: hdfs.read(path))

    def list_folder(self, path: str) -> list[dict[str, Any]]:
        """The FileStatus of all in a folder, or of the one file."""
        return self._see(path, lambda hdfs: hdfs.list_folder(path))

    def block_locations(self, path: str) -> list[dict[str, Any]]:
        """The BlockLocation of each block of a file."""
        return self._see(path, lambda hdfs: hdfs.block_locations(path))

    def racks(self) -> dict[str, str]:
        """Every live DataNode with its rack, which is nobody's secret."""
        return self._service.racks()

    def _see(self, path: str, look: Callable[[WebHdfs], T]) -> T:
        what = path or f"the own folder of {self._user}"
        if any(is_below(path, folder) for folder in self._open):
            return look(self._service)
        if not self._user:
            raise NotShown(
                f"{what} is not open to callers who are no users of Hadoop", remedy=f"{SHOW_ONE}, or {OPEN_PATH}"
            )
        try:
            if self._user == self._own_name():
                return look(self._service)
            return look(self._service.seen_by(self._user))
        except NotProxy as error:
            raise NotShown(
                f"{what} cannot be seen as {self._user}, for Hadoop says: {error.reason}",
                remedy=f"make it a proxy user (hadoop.proxyuser in core-site.xml), or {OPEN_PATH}",
            ) from error
        except Refused as error:
            raise NotShown(error.message) from error


Hdfs = WebHdfs | SeenHdfs


def is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it, as far as its name tells.

    >>> [is_below(path, "/data") for path in ("/data", "/data/a", "/database", "/data/../a", "")], is_below("/a", "/")
    ([True, True, False, False, False], True)
    """
    plain = PurePosixPath(path)
    return plain.is_absolute() and ".." not in plain.parts and plain.is_relative_to(folder)


def name_of_home(hdfs: WebHdfs) -> str:
    """The user whose folder HDFS calls the own one of whoever asks."""
    return PurePosixPath(hdfs.home()).name
