"""Reaches the pools of a user without a JVM: YARN tells where a pool's master listens, and HDFS has what it is told.

Only the owner of a pool can read its token, in the pool's folder in HDFS.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

import msgspec

from hadoop.rest.addresses import namenode_addresses, resourcemanager_addresses
from hadoop.rest.pages import NotKnown
from hadoop.rest.resourcemanager import ResourceManager, has_ended
from hadoop.rest.webhdfs import WebHdfs
from infosvc.wire.bounded_answer import answer_by, new_connection, read_whole
from jobs.application.job_record import KIND_TAG
from jobs.application.job_spec import JobSpec
from jobs.errors import JobError
from jobs.kinds.pool.settings import PoolSettings, check_name
from jobs.kinds.pool.wishes import (
    DOWN,
    INFER,
    JOB,
    JOBS,
    KILL,
    LARGEST_PICTURE,
    SUBMIT,
    Down,
    JobWish,
    OneJob,
    Picture,
)

KIND = "pool"
TAG = "pool="
UNDER_WAY = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING")
TYPE = "NODEWISE"
"""What YARN calls applications of ours."""
AWAY_SECONDS = 60.0
"""How long the master of a pool may not answer: YARN starts another one meanwhile."""
CALL_SECONDS, CONNECT_SECONDS = 90.0, 5.0
LATE_SECONDS = 10.0
"""How much later than it was asked to a master may answer."""
PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.25, 4.0
MOST_BYTES = 16 << 20


class NotNow(JobError):
    """What was asked for may be had later: the pool is not up, is full, or has no worker."""


class Ended(NotNow):
    """The pool has ended, so no further call will be answered."""


@dataclass(frozen=True)
class Found:
    """A pool as YARN tells of it; `state` is YARN's word."""

    name: str
    application_id: str
    user: str
    queue: str
    state: str
    started_at: float


class Files(Protocol):
    """HDFS as a user sees it."""

    def home(self) -> str: ...

    def read(self, path: str) -> bytes: ...


def pool_tag(name: str) -> str:
    """The tag by which YARN keeps the name of a pool; JobError for what can be no name."""
    return TAG + check_name(name)


class Pools:
    """The pools of a cluster, as `user` sees them. HadoopError when YARN or HDFS does not answer.

    What the pools were told is read from `files`, if somebody else asks in the user's place.
    """

    def __init__(self, conf_dir: Path, user: str, files: Files | None = None) -> None:
        self._manager = ResourceManager(resourcemanager_addresses(conf_dir), user)
        self.filesystem = WebHdfs(namenode_addresses(conf_dir), user)
        self._files = files or self.filesystem
        self.user = user

    def list(self) -> list[Found]:
        """All that YARN has not ended, by name; of the same name and user, the one first that YARN took first."""
        rows = self._manager.applications(TYPE, UNDER_WAY)
        return sorted((found for row in rows if (found := _parse(row))), key=_age)

    def find_older(self, name: str, application_id: str = "") -> Found | None:
        """The user's own pool of a name that YARN took before this application, or any; None when there is none."""
        named = [one for one in self.list() if (one.name, one.user) == (name, self.user)]
        return named[0] if named and named[0].application_id != application_id else None

    def find(self, name: str) -> Pool:
        """The user's own pool of a name; NotNow when there is none."""
        wanted, own = check_name(name), [found for found in self.list() if found.user == self.user]
        for found in own:
            if found.name == wanted:
                return Pool(found.application_id, self._manager, self._files)
        known = ", ".join(found.name for found in own) or "none"
        raise NotNow(
            f"there is no pool {wanted}: {self.user} has {known}",
            remedy=f"`nodewise pool up {wanted} --engine ENGINE` starts it",
        )

    def of(self, application_id: str) -> Pool:
        """The user's own pool that is this application; Ended when it has ended, or YARN does not know it.

        JobError when it is another user's: nobody else can read what it was told.
        """
        try:
            application = self._manager.application(application_id)
        except NotKnown:
            application = None
        if application is None or has_ended(application):
            raise Ended(f"the pool {application_id} has ended, and its jobs with it")
        if (owner := application.get("user") or self.user) != self.user:
            raise JobError(
                f"the pool {application_id} is {owner}'s, and {self.user} may not ask it",
                remedy=f"have {owner} ask it; `nodewise pool list` tells whose each pool is",
            )
        return Pool(application_id, self._manager, self._files)


class Pool:
    """One pool of the user's own. JobError says why it does not do what it was asked for, and what to do."""

    def __init__(self, application_id: str, manager: ResourceManager, files: Files) -> None:
        self.application_id = application_id
        self._manager = manager
        self._files = files
        self._spec: JobSpec | None = None
        self._address = ""

    @property
    def spec(self) -> JobSpec:
        """What its master was told."""
        if self._spec is None:
            self._spec = JobSpec.from_json(self._read("job.json"))
        return self._spec

    @property
    def settings(self) -> PoolSettings:
        """What it was told as a pool."""
        return PoolSettings.from_json(self.spec.settings)

    def submit(
        self, wish: JobWish, seconds: float = CALL_SECONDS, away_seconds: float | None = None
    ) -> tuple[str, list[str]]:
        """Give it a job; the job's id, and what there is to say of it."""
        answer = self._call(SUBMIT, wish, seconds + wish.capability_wait, away_seconds)
        return str(answer["job_id"]), list(answer["notes"])

    def jobs(self, seconds: float = CALL_SECONDS, away_seconds: float | None = None) -> list[dict[str, Any]]:
        """Those at work, and those that have ended lately, in the order in which they came."""
        return list(self._call(JOBS, {}, seconds, away_seconds)["jobs"])

    def job(self, job_id: str) -> tuple[dict[str, Any], str]:
        """The status of one, as JSON, and what was said at its end."""
        answer = self._call(JOB, OneJob(job_id))
        return answer["status"], str(answer["said"])

    def kill(self, job_id: str) -> str:
        """End one; the state that it was in."""
        return str(self._call(KILL, OneJob(job_id))["was"])

    def go_down(self, now: bool) -> int:
        """Have it end once its jobs have, or kill these now; how many there are."""
        return int(self._call(DOWN, Down(now))["jobs"])

    def infer(self, picture: Picture, content: bytes = b"", away_seconds: float | None = None) -> dict[str, Any]:
        """The row of a single picture, whose bytes are given unless it has a path; any number of threads may ask.

        NotNow when the master is away for so long, a minute if that is not said.
        """
        if len(content) > LARGEST_PICTURE:
            raise JobError(
                f"{picture.name} has more than the {LARGEST_PICTURE:,} bytes that are sent to a pool at most",
                remedy="put it into HDFS, and name it by its path there, as hdfs:///folder/name",
            )
        if not (picture.path or content):
            raise JobError(f"{picture.name} is empty", remedy="give a file that has a picture in it")
        query = urlencode(msgspec.to_builtins(picture), errors="replace")
        seconds = picture.seconds + LATE_SECONDS
        return dict(self._call_with(f"{INFER}?{query}", content, seconds, away_seconds)["row"])

    def _call(
        self, path: str, body: Any, seconds: float = CALL_SECONDS, away_seconds: float | None = None
    ) -> dict[str, Any]:
        """An answer of its master to what is said in JSON."""
        return self._call_with(path, msgspec.json.encode(body), seconds, away_seconds)

    def _call_with(
        self, path: str, content: bytes, seconds: float, away_seconds: float | None = None
    ) -> dict[str, Any]:
        """An answer of its master within so long, whichever attempt that is; calls can be made again."""
        give_up = time.monotonic() + (AWAY_SECONDS if away_seconds is None else away_seconds)
        while True:
            try:
                status, answer = self._post(path, content, seconds)
            except (OSError, HTTPException, NotKnown) as error:
                status, answer = 503, {"error": str(error) or type(error).__name__}
            if status == 200:
                return _checked(answer)
            if status not in (401, 503):  # 401 is of a stranger who listens where an earlier attempt of it did
                called = path.partition("?")[0]
                raise JobError(f"the pool's master refused {called}: {answer.get('error', status)}")
            self._address = ""  # also for the next call, if this one gives up
            if not _is_running(self._manager, self.application_id):
                raise Ended(f"the pool {self.application_id} has ended")
            if time.monotonic() > give_up:
                raise NotNow(
                    f"the master of the pool {self.application_id} does not answer: {answer.get('error', status)}",
                    remedy=f"`nodewise job status {self.application_id}` tells what it does, `nodewise job kill "
                    f"{self.application_id}` ends it",
                )
            time.sleep(PAUSE_SECONDS)

    def _post(self, path: str, content: bytes, seconds: float) -> tuple[int, dict[str, Any]]:
        token = self.spec.token
        address = self._address = self._address or self._find_address()
        parts = urlsplit(address)
        connection = new_connection(str(parts.hostname), parts.port, CONNECT_SECONDS)
        try:
            connection.connect()
            connection.sock.settimeout(seconds)  # a picture may take longer to be sent
            connection.request("POST", path, content, {"Authorization": f"Bearer {token}"})
            answer = answer_by(connection, time.monotonic() + seconds)
            found = json.loads(read_whole(answer, MOST_BYTES) or b"{}")
            return answer.status, found if isinstance(found, dict) else {}
        except ValueError as error:
            raise HTTPException(f"it is no answer of a pool's master: {error}") from None
        finally:
            connection.close()

    def _find_address(self) -> str:
        try:
            return str(self._read("master.json")["address"])
        except NotKnown:
            raise HTTPException("it is not up yet; YARN may have no room for it") from None

    def _read(self, name: str) -> Any:
        """A file of the pool's folder."""
        return json.loads(self._files.read(f"{self._files.home()}/.nodewise/{self.application_id}/{name}"))


def patiently(seconds: float, do: Callable[[], Any], say: Callable[[str], None]) -> Any:
    """What `do` brings, tried again for so long while it is NotNow; `say` hears once why it waits."""
    until, said, pause = time.monotonic() + seconds, "", PAUSE_SECONDS
    while True:
        try:
            return do()
        except NotNow as error:
            if time.monotonic() >= until:
                raise
            if error.message != said:
                said = error.message
                say(f"waits: {said}")
            time.sleep(min(pause, max(0.0, until - time.monotonic())))
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)  # each try asks YARN, HDFS and the pool


def _is_running(manager: ResourceManager, application_id: str) -> bool:
    """Whether YARN knows an application that has not ended."""
    try:
        return manager.is_running(application_id)
    except NotKnown:
        return False


def _parse(row: Mapping[str, Any]) -> Found | None:
    tags = [tag.strip() for tag in str(row.get("applicationTags") or "").split(",")]
    name = next((tag.removeprefix(TAG) for tag in tags if tag.startswith(TAG)), "")
    if not name or f"{KIND_TAG}{KIND}" not in tags:
        return None
    queue, started = str(row.get("queue") or ""), float(row.get("startedTime") or 0) / 1000
    return Found(name, str(row["id"]), str(row.get("user") or ""), queue, str(row["state"]), started)


def _age(one: Found) -> tuple[str, str, float, str]:
    """Pools of one name and user in the order in which YARN took them."""
    return one.name, one.user, one.started_at, one.application_id


def _checked(answer: dict[str, Any]) -> dict[str, Any]:
    """JobError for a refusal, NotNow for one that may pass."""
    if "refused" in answer:
        raise (NotNow if answer["passes"] else JobError)(str(answer["refused"]), remedy=str(answer["remedy"]))
    return answer
