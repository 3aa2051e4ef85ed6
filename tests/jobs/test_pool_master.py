"""The master of a pool between its jobs: which nodes it seats, when it ends, and what it knows of an attempt before."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest

from hadoop.errors import Denied, HadoopError
from infosvc.wire.errors import NotFound, Unreachable
from jobs.application.calls import Refused, Request
from jobs.application.coordinator import Attempt, Container, Knowledge, Role, Seat
from jobs.application.journal import Record
from jobs.division import kept_work
from jobs.errors import JobError
from jobs.kinds.pool.coordinator import DOWN_ASKED, ENDED, KILLED, TAKEN, Pool
from jobs.kinds.pool.request import MASTER_MB
from jobs.kinds.pool.seats import SEATS, Seats
from jobs.kinds.pool.settings import PoolSettings
from jobs.kinds.pool.wishes import IDLE_FOR, JobWish
from tests.jobs.dealing import Paper, rows
from tests.jobs.stored import SETTINGS, SPEC, Written

NONE: Any = None
STAGING = "/user/me/.nodewise/application_1_0001"
WISH = JobWish(key="k1", input="/in", output="/out", capability="weight")
GIVEN = Record(TAKEN, {"number": 1, "wish": msgspec.to_builtins(WISH), "files": 5})


class Cluster(Knowledge):
    """Nodes that the test names."""

    def __init__(self, *names: str) -> None:
        super().__init__(NONE, NONE)
        self.names = list(names)

    def nodes(self) -> list[str]:
        return sorted(self.names)


class Away(Cluster):
    """Nodes of which nobody tells what they have: the information service does not answer."""

    def nodes(self) -> list[str]:
        raise Unreachable("the service does not answer")


class Scene:
    """One attempt at a pool; the test is the clock."""

    def __init__(self, earlier: Sequence[Record] = (), **settings: Any) -> None:
        self.now, self.paper = 0.0, Paper()
        told = PoolSettings(name="photos", job=asdict(SETTINGS), **settings)
        spec = replace(SPEC, kind="pool", staging=STAGING, settings=asdict(told), master_memory=MASTER_MB)
        self.files = Written({f"{STAGING}/worker.json": b"{}"})
        files: Any = self.files
        self.attempt = Attempt(1, spec, files, NONE, self.paper, "", tuple(earlier), 0.0, lambda: self.now)
        self.pool = Pool(self.attempt)

    def role(self, *nodes: str) -> Role:
        (role,) = self.pool.roles(Cluster(*nodes))
        return role

    def post(self, path: str, **body: Any) -> Any:
        return self.pool.hear(path, Request("", json.dumps(body).encode()))


def test_each_node_has_a_worker_and_new_ones_get_one_or_only_the_first_of_them() -> None:
    everywhere = Scene().role("b", "a", "c")
    assert (list(everywhere.nodes), list(everywhere.spares), everywhere.stands) == (["a", "b", "c"], [], True)
    assert everywhere.admit is not None
    assert everywhere.most > 1000

    some = Scene(nodes="2").role("b", "a", "c")
    assert (list(some.nodes), list(some.spares), some.admit, some.stands) == (["a", "b"], ["c"], None, True)


def test_seats_are_kept_from_one_attempt_to_the_next_and_new_nodes_come_behind() -> None:
    scene = Scene([Record(SEATS, {"nodes": ["c", "a"]})])

    assert list(scene.role("a", "b", "c").nodes) == ["c", "a", "b"]
    assert scene.paper.records[-1] == Record(SEATS, {"nodes": ["c", "a", "b"]})


def test_an_attempt_goes_on_with_the_seats_of_the_one_before_while_the_service_is_away(
    capsys: pytest.CaptureFixture[str],
) -> None:
    away = Away("a", "b")
    scene = Scene([Record(SEATS, {"nodes": ["c", "a"]})])

    (role,) = scene.pool.roles(away)

    assert list(role.nodes) == ["c", "a"]
    assert "no node gets a worker that had none before: the service does not answer" in capsys.readouterr().out
    assert scene.post("/pool/jobs") == {"jobs": []}
    assert not scene.pool.progress().is_done

    with pytest.raises(Unreachable):  # nobody knows yet on which nodes its workers could run
        Scene().pool.roles(away)


def test_a_new_node_has_a_seat_once_it_is_known_that_it_can_have_one() -> None:
    scene, cluster = Scene(), Cluster("a")
    seats = Seats(scene.attempt, cluster, None)
    cluster.names = ["a", "new"]

    found: Sequence[str] = ()
    until = time.monotonic() + 60
    while not found and time.monotonic() < until:
        found = seats.admit(["new", "unfit"])

    assert list(found) == ["new"]
    assert scene.paper.records[-1] == Record(SEATS, {"nodes": ["a", "new"]})


def test_a_pool_without_a_job_ends_after_its_time_and_says_so() -> None:
    scene = Scene(idle="30m")
    scene.role("a")

    scene.now = 1799.0
    scene.pool.tick()
    assert not scene.pool.progress().is_done
    assert (scene.pool.progress().section or {})[IDLE_FOR] == 1799
    scene.now = 1801.0
    scene.pool.tick()

    assert scene.pool.progress().is_done
    assert scene.pool.finish().message == "the pool photos has done 0 jobs: it had no job or picture for 30m"


def test_a_pool_that_never_ends_by_itself_ends_when_its_owner_says_so_and_takes_no_job_then() -> None:
    scene = Scene(idle="0")
    scene.role("a")
    scene.now = 1e6
    scene.pool.tick()
    assert not scene.pool.progress().is_done

    assert scene.post("/pool/down") == {"jobs": 0}
    scene.pool.tick()

    assert scene.pool.progress().is_done
    assert scene.pool.finish().message == "the pool photos has done 0 jobs: it was ended by its owner"


@pytest.mark.parametrize("now", [False, True])
def test_a_pool_that_was_to_end_when_its_master_was_lost_ends_in_the_next_attempt(
    now: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Scene([GIVEN], idle="0")
    first.role("a")
    assert first.post("/pool/down", now=now) == {"jobs": 1}
    first.post("/pool/kill", job_id="pool_1_0001_1")
    first.pool._lives.wait()
    asked = [record for record in first.paper.records if record.kind == DOWN_ASKED]
    assert [record.body for record in asked] == [{"now": now}], "before that is answered"

    for killed_before in (False, True):  # the master may have been lost before it had recorded that, too
        kills = [Record(KILLED, {"number": 1})] if now and killed_before else []
        second = Scene([GIVEN, *asked, *kills], idle="0")
        second.role("a")
        monkeypatch.setattr(second.pool._intake, "check", lambda wish, *_: (wish, 5))

        refused = second.post("/pool/submit", **msgspec.to_builtins(msgspec.structs.replace(WISH, key="k2")))
        (job,) = second.post("/pool/jobs")["jobs"]
        second.post("/pool/kill", job_id=job["job_id"])
        second.pool._lives.wait()
        second.pool.tick()

        assert refused["refused"] == "the pool photos is going down: it was ended by its owner"
        assert job["state"] == ("killed" if now else "planning"), "what was not to be killed goes on"
        assert second.pool.progress().is_done
        assert second.pool.finish().message == "the pool photos has done 1 jobs: it was ended by its owner"


@pytest.mark.parametrize(
    ("kills", "state"), [([], "planning"), ([Record(KILLED, {"number": 1})], "killed")], ids=["spared", "killed before"]
)
def test_a_job_that_was_storing_when_its_pool_was_ended_at_once_goes_on_after_the_master_was_lost(
    kills: list[Record], state: str
) -> None:
    scene = Scene([GIVEN, Record(DOWN_ASKED, {"now": True}), *kills])
    scene.files[f"{STAGING}/jobs/1/{kept_work.MARK}"] = b"{}"
    scene.role("a")

    (job,) = scene.post("/pool/jobs")["jobs"]
    scene.post("/pool/kill", job_id=job["job_id"])
    scene.pool._lives.wait()

    assert job["state"] == state


def test_a_pool_that_cannot_record_that_it_is_to_end_does_not_say_that_it_will() -> None:
    scene = Scene(idle="0")
    scene.role("a")
    scene.paper.fails = True

    with pytest.raises(HadoopError, match="HDFS is away"):
        scene.post("/pool/down")
    with pytest.raises(HadoopError, match="HDFS is away"):
        scene.pool.tick()
    assert not scene.pool.progress().is_done, "the next attempt is asked again"


def test_whoever_tells_a_pool_to_end_that_is_over_hears_that_it_does() -> None:
    scene = Scene(idle="30m")
    scene.role("a")
    scene.now = 1801.0
    scene.pool.tick()
    scene.paper.fails = True  # its journal is closed

    assert scene.post("/pool/down") == {"jobs": 0}
    assert scene.pool.finish().message.endswith(": it had no job or picture for 30m")


def test_a_job_that_was_given_before_the_master_was_lost_is_known_by_its_key() -> None:
    ended = Record(ENDED, {"number": 1, "state": "succeeded", "said": "", "items": 7})
    scene = Scene([GIVEN, ended])
    scene.role("a")

    again = scene.post("/pool/submit", **msgspec.to_builtins(WISH))

    assert again == {"job_id": "pool_1_0001_1", "notes": []}
    assert (scene.pool.progress().done, scene.pool.progress().of) == (7, 7)
    assert not [record for record in scene.paper.records if record.kind == TAKEN]


def test_one_that_was_at_work_goes_on() -> None:
    scene = Scene([GIVEN])
    scene.role("a")

    scene.now = 100.0
    (job,) = scene.post("/pool/jobs")["jobs"]

    assert (scene.pool.progress().section or {})[IDLE_FOR] == 0, "it works"
    assert (job["job_id"], job["state"], job["output"]) == ("pool_1_0001_1", "planning", "/out")
    assert scene.post("/pool/job", job_id="pool_1_0001_1")["status"]["state"] == "planning"
    assert scene.post("/pool/kill", job_id="pool_1_0001_1") == {"was": "planning"}
    assert Record(KILLED, {"number": 1}) in scene.paper.records, "before that is answered"


def test_one_that_was_killed_does_not_go_on_when_the_master_was_lost_before_it_had_ended() -> None:
    scene = Scene([GIVEN, Record(KILLED, {"number": 1})])
    scene.role("a")

    scene.pool._lives.wait()

    assert [job["state"] for job in scene.post("/pool/jobs")["jobs"]] == ["killed"]
    assert [record.body["state"] for record in scene.paper.records if record.kind == ENDED] == ["killed"]


def test_a_pool_does_not_end_while_it_records_a_job_that_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(idle="30m")
    scene.role("a")
    monkeypatch.setattr(scene.pool._intake, "check", lambda wish, *_: (wish, 5))
    append, ends = scene.paper.append, list[bool]()

    def append_slowly(record: Record) -> None:
        append(record)
        scene.now += 1e6
        scene.pool.tick()
        ends.append(scene.pool.progress().is_done)

    monkeypatch.setattr(scene.paper, "append", append_slowly)
    answer = scene.post("/pool/submit", **msgspec.to_builtins(WISH))

    assert answer["job_id"] == "pool_1_0001_1"
    assert ends == [False]
    scene.post("/pool/kill", job_id=answer["job_id"])
    scene.pool._lives.wait()


def infer(scene: Scene, body: bytes = b"a picture", **query: Any) -> Any:
    return scene.pool.hear("/pool/infer", Request(urlencode({"seconds": 60, **query}), body))


def make_ready(scene: Scene) -> None:
    """A worker on node a that has asked for work."""
    scene.role("a")
    scene.pool.on_start(Container(Seat("worker", 0, "a"), "c1", "a:8042"))
    scene.post("/take", node_name="a", container_id="c1", holding=[])


def test_a_picture_has_the_row_that_the_worker_of_a_node_made_and_keeps_the_pool_open_meanwhile() -> None:
    scene = Scene(idle="30m")
    make_ready(scene)
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(infer, scene, name="cat.jpg")
        end = time.monotonic() + 60
        while not scene.pool._pictures.in_hand and time.monotonic() < end:
            time.sleep(0.01)
        scene.now = 1e6
        scene.pool.tick()
        scene.post("/pool/down")
        assert not scene.pool.progress().is_done

        lease = scene.post("/take", node_name="a", container_id="c1", holding=[])["lease"]
        (name,) = (item[3] for group in lease["groups"] for item in group["items"])
        told = {"node_name": "a", "container_id": "c1", "lease": lease["lease"], "seconds": 0.25, "bytes_read": 9}
        answer = scene.pool.hear("/commit", Request(urlencode(told), rows("a", [name])))
        assert answer and answer["answer"] == "accepted"

        row = asked.result(60)["row"]
    assert (row["path"], row["node_name"], row["error"], row["work_milliseconds"]) == ("cat.jpg", "a", None, 250.0)
    assert scene.pool.progress().is_done
    assert {record.kind for record in scene.paper.records} == {SEATS, DOWN_ASKED}, "nothing is kept of it"


def test_a_picture_waits_again_when_its_worker_has_been_silent_for_longer_than_a_lease_lasts() -> None:
    scene = Scene()
    make_ready(scene)
    worker = {"node_name": "a", "container_id": "c1"}
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(infer, scene, name="cat.jpg")
        end = time.monotonic() + 60
        while not scene.pool._pictures.in_hand and time.monotonic() < end:
            time.sleep(0.01)
        late = scene.post("/take", **worker, holding=[])["lease"]["lease"]
        scene.now += SETTINGS.lease_seconds + 1
        scene.pool.tick()

        assert scene.post("/heartbeat", **worker)["holding"] == []
        lease = scene.post("/take", **worker, holding=[late])["lease"]
        (name,) = (item[3] for group in lease["groups"] for item in group["items"])
        told = {**worker, "lease": lease["lease"], "seconds": 0.25, "bytes_read": 9}
        scene.pool.hear("/commit", Request(urlencode(told), rows("a", [name])))
        assert asked.result(60)["row"]["error"] is None


class Closed(Written):
    """HDFS that fails whoever looks at a file or for one."""

    def __init__(self, error: HadoopError) -> None:
        super().__init__({})
        self._error = error

    def path(self, name: str) -> Any:
        return SimpleNamespace(toUri=lambda: SimpleNamespace(getPath=lambda: name))

    def size(self, name: str) -> int | None:
        raise self._error

    def exists(self, name: str) -> bool:
        raise self._error


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (HadoopError("looking for /in failed: connection refused"), True),
        (Denied("user me may not read /in"), False),
        (JobError("/in is not in HDFS"), False),
        (Unreachable("the service does not answer"), True),
        (NotFound("no producer is registered under 'weight'"), False),
    ],
    ids=["HDFS is away", "denied", "wrong", "the service is away", "unknown"],
)
def test_a_job_may_be_given_again_where_hdfs_or_the_service_was_away(error: Any, passes: bool) -> None:
    scene = Scene()
    make_ready(scene)
    files: Any = Closed(error)
    scene.pool._intake._attempt = replace(scene.attempt, filesystem=files)

    answer = scene.post("/pool/submit", **msgspec.to_builtins(WISH))

    assert answer == {"refused": error.message, "remedy": "", "passes": passes}


def test_a_file_that_may_not_be_read_is_refused_and_a_namenode_that_is_away_is_asked_again() -> None:
    scene = Scene()
    make_ready(scene)
    files: Any = Closed(Denied("user me may not read /a", remedy="ask its owner"))
    scene.pool._intake._attempt = replace(scene.attempt, filesystem=files)
    assert infer(scene, b"", path="/a") == {
        "refused": "user me may not read /a",
        "remedy": "ask its owner",
        "passes": False,
    }

    files._error = HadoopError("looking at /a failed: connection refused")
    with pytest.raises(HadoopError, match="connection refused"):
        infer(scene, b"", path="/a")


def test_a_picture_is_refused_without_a_worker_and_when_the_pool_goes_down() -> None:
    scene = Scene()
    scene.role("a")
    refused = infer(scene)
    assert (refused["refused"], refused["passes"]) == ("no worker of the pool photos is ready", True)

    scene = Scene()
    make_ready(scene)
    scene.post("/pool/down")
    assert "the pool photos is going down: it was ended by its owner" in infer(scene)["refused"]


@pytest.mark.parametrize(
    ("body", "query"), [(b"", {}), (b"x", {"path": "/a"}), (b"x", {"seconds": 0}), (b"x", {"seconds": 61})]
)
def test_a_call_that_names_no_picture_or_two_or_has_no_time_is_refused(body: bytes, query: dict[str, Any]) -> None:
    scene = Scene()
    make_ready(scene)

    with pytest.raises(Refused):
        infer(scene, body, **query)


def test_jobs_that_come_at_once_get_no_more_memory_than_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    scene.role("a")
    monkeypatch.setattr(scene.pool._intake, "check", lambda wish, *_: (wish, 300_000))  # each was alone then

    first, second = (
        scene.post("/pool/submit", **msgspec.to_builtins(msgspec.structs.replace(WISH, key=key, output=f"/{key}")))
        for key in ("k1", "k2")
    )

    assert first["job_id"] == "pool_1_0001_1"
    assert "its master would hold the plans of 600,000 files, and it has memory for 384,000" in second["refused"]
    assert second["passes"]
    scene.post("/pool/kill", job_id=first["job_id"])
    scene.pool._lives.wait()


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (msgspec.structs.replace(WISH, weight=0.0), "--weight is 0"),
        (msgspec.structs.replace(WISH, weight=1000.0), "--weight is 1000"),
    ],
)
def test_a_weight_has_to_be_one(wish: JobWish, said: str) -> None:
    scene = Scene()
    scene.role("a")

    answer = scene.post("/pool/submit", **msgspec.to_builtins(wish))

    assert answer["refused"] == said
    assert not answer["passes"]


@pytest.mark.parametrize(
    "body", [{}, {**msgspec.to_builtins(WISH), "other": 1}, {**msgspec.to_builtins(WISH), "steal": "no"}]
)
def test_a_call_that_is_no_job_is_refused(body: dict[str, Any]) -> None:
    scene = Scene()
    scene.role("a")

    with pytest.raises(Refused):
        scene.post("/pool/submit", **body)


def test_a_job_that_the_pool_does_not_know_is_refused_by_its_id() -> None:
    scene = Scene()
    scene.role("a")

    assert "knows no job pool_1_0001_9 any more" in scene.post("/pool/kill", job_id="pool_1_0001_9")["refused"]


def test_a_fault_in_answering_a_user_is_told_to_that_user_and_ends_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    scene = Scene()
    scene.role("a")
    scene.pool.on_start(Container(Seat("worker", 0, "a"), "c1", "a:8042"))
    scene.post("/take", node_name="a", container_id="c1", holding=[])

    answer = scene.post("/pool/submit", **msgspec.to_builtins(WISH))  # these files have no paths

    assert answer["refused"].startswith("AttributeError: ")
    assert "Traceback" in capsys.readouterr().err
    assert scene.post("/pool/jobs") == {"jobs": []}
