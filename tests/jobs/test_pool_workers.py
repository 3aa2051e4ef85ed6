"""Several jobs on the workers of one pool: each has its own leases, rows and suspects, and none hears of another's."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import urlencode

import pytest

from hadoop.errors import HadoopError
from jobs.application.calls import Gone, Request
from jobs.application.coordinator import Attempt, Container, End, Knowledge, Seat, Then
from jobs.application.exits import Exit, exit_of
from jobs.application.job_spec import JobSpec
from jobs.errors import JobError
from jobs.images.rows import find_flaw
from jobs.itemwork.commits import commits
from jobs.itemwork.messages import Item
from jobs.kinds.pool.lives import Lives
from jobs.kinds.pool.pace import Pace
from jobs.kinds.pool.pictures import Pictures
from jobs.kinds.pool.pooled_job import PooledJob, State
from jobs.kinds.pool.settings import PoolSettings
from jobs.kinds.pool.wishes import JobWish
from jobs.kinds.pool.workers import Workers
from locality.types import Block
from tests.jobs.dealing import Paper, rows, stored_rows
from tests.jobs.decisions import decide
from tests.jobs.stored import SETTINGS, SPEC, Written

NONE: Any = None
A, B = "alpha", "beta"
POOL_SPEC = replace(SPEC, kind="pool", staging="/user/me/.nodewise/application_1_0001")
POOL = PoolSettings(name="photos", job=asdict(replace(SETTINGS, batch=1)))


class Scene:
    """A pool with workers on two nodes, and jobs of which each has been planned; the test is the clock."""

    client: Any = NONE
    """The information service, for jobs that are added from then on."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pictures, self.pace = Pictures("photos", 1, 4, find_flaw), Pace(processes=1, batch=4)
        self.workers = Workers(lambda: self.now, self.pictures, self.pace)
        self.papers: dict[str, Paper] = {}
        self.attempts: dict[str, Attempt] = {}
        for node in (A, B):
            self.start(node, 1)

    def start(self, node: str, number: int) -> Container:
        container = Container(Seat("worker", 0, node), f"{node}-{number}", f"{node}:8042")
        self.workers.on_start(container)
        return container

    def add(self, number: int, nodes: Sequence[str], items: int, weight: float = 1.0) -> PooledJob:
        """A job with so many images for each of these nodes."""
        wish = JobWish(
            key=str(number), input=f"/in{number}", output=f"/out{number}", capability="weight", weight=weight
        )
        pool = Attempt(1, POOL_SPEC, NONE, NONE, Paper(), "", (), 0.0, lambda: self.now)
        job = PooledJob(pool, POOL, number, wish)
        blocks = [Block(f"/in{number}/{node}{one}", 1, 100, (node,)) for node in nodes for one in range(items)]
        decision = decide("even", dict.fromkeys(nodes, 1.0), blocks)
        files: Any = Written(
            {f"{job.spec.staging}/decision.json": replace(decision, job_id=job.spec.job_id).to_bytes()}
        )
        paper = self.papers[job.name] = Paper()
        attempt = Attempt(1, job.spec, files, self.client, paper, "", (), 0.0, lambda: self.now)
        self.attempts[job.name] = attempt
        job.take_up(attempt, Knowledge(files, NONE))
        assert job.move({State.PLANNING}, State.RUNNING)
        self.workers.add_job(job)
        return job

    def post(self, path: str, node: str, number: int = 1, **body: Any) -> Any:
        names = {"node_name": node, "container_id": f"{node}-{number}"}
        return self.workers.hear(path, Request("", json.dumps(names | body).encode()))

    def take(self, node: str, holding: Sequence[str] = (), number: int = 1) -> Any:
        return self.post("/take", node, number, holding=list(holding))

    def lease(self, node: str, holding: Sequence[str] = ()) -> tuple[str, list[str]]:
        """The name of a lease, and those of its images."""
        lease = self.take(node, holding)["lease"]
        return lease["lease"], [Item.from_json(item).name for group in lease["groups"] for item in group["items"]]

    def commit(self, node: str, lease: str, names: Sequence[str], errors: Mapping[str, str] | None = None) -> str:
        query = {"node_name": node, "container_id": f"{node}-1", "lease": lease, "seconds": 0.1, "bytes_read": 1}
        answer = self.workers.hear("/commit", Request(urlencode(query), rows(node, names, errors)))
        assert answer
        return str(answer["answer"])

    def names(self, number: int) -> list[str]:
        return [name for name, _ in stored_rows(self.papers[str(number)].records)]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_rows_come_to_the_job_of_their_lease_alone_and_each_job_is_done_by_itself(scene: Scene) -> None:
    first, second = scene.add(1, [A, B], 6), scene.add(2, [A], 3)

    while not (first.is_done and second.is_done):
        scene.now += 0.1
        for node in (A, B):
            if "lease" in scene.take(node):
                lease, names = scene.lease(node)  # the same again, as the first answer was lost
                assert {name.split("/")[1] for name in names} == {f"in{lease.partition(':')[0]}"}
                assert scene.commit(node, lease, names) == "accepted"

    assert sorted(scene.names(1)) == sorted(f"/in1/{node}{number}" for node in (A, B) for number in range(6))
    assert sorted(scene.names(2)) == [f"/in2/{A}{number}" for number in range(3)]
    assert {commit.lease.partition("-")[0] for commit in commits(scene.papers["2"].records)} == {"1"}, "its own names"


def test_a_node_that_a_job_does_not_plan_for_gets_none_of_it(scene: Scene) -> None:
    scene.add(1, [A], 4)

    assert "wait" in scene.take(B)
    assert scene.take(A)["lease"]["lease"].startswith("1:")


@pytest.mark.parametrize(("weight", "most"), [(1.0, 1.5), (4.0, 5.0)])
def test_jobs_that_are_at_work_at_once_share_by_weight(scene: Scene, weight: float, most: float) -> None:
    scene.add(1, [A], 200, weight)
    scene.add(2, [A], 200)
    done = {"1": 0, "2": 0}

    for _ in range(60):
        scene.now += 0.1
        lease, names = scene.lease(A)
        scene.commit(A, lease, names)
        done[lease.partition(":")[0]] += len(names)

    assert weight / 1.5 <= done["1"] / done["2"] <= most


def test_what_waits_for_a_node_stays_its_own_while_that_does_another_job(scene: Scene) -> None:
    scene.add(1, [A], 1000, weight=100.0)
    rare = scene.add(2, [A, B], 4, weight=0.01)

    held: dict[str, list[str]] = {}
    for _ in range(250):  # longer than a lease
        scene.now += 0.1
        scene.post("/heartbeat", A)
        scene.post("/heartbeat", B)
        for lease, names in held.items():
            scene.commit(A, lease, names)
        lease, names = scene.lease(A)
        held = {lease: names}
        for job in scene.workers.jobs():
            job.tick()

    queue = rare._work._work._leases._members[A].queue  # type: ignore[union-attr]
    assert queue.items > 0


def test_what_waits_for_a_node_stays_its_own_while_that_does_one_long_lease_of_another_job(scene: Scene) -> None:
    scene.add(1, [A], 1)
    rare = scene.add(2, [A, B], 40)
    held = dict([scene.lease(A)])
    held |= dict([scene.lease(A, list(held))])
    scene.now += 0.1
    scene.commit(A, *next((lease, names) for lease, names in held.items() if lease.startswith("2:")))

    for _ in range(100):  # of a second each, which is longer than a lease
        scene.now += 1.0
        scene.post("/heartbeat", A)
        rare.tick()

    assert rare._work._work._leases._members[A].queue.items > 0  # type: ignore[union-attr]


def test_a_heartbeat_brings_the_leases_of_all_jobs_and_a_job_that_was_ended_takes_its_own_away(scene: Scene) -> None:
    first = scene.add(1, [A], 4)
    scene.add(2, [A], 4)
    one, names = scene.lease(A)
    other, _ = scene.lease(A, [one])
    assert {one[0], other[0]} == {"1", "2"}
    assert set(scene.post("/heartbeat", A)["holding"]) == {one, other}

    scene.workers.remove_job(first)

    mine = one if one.startswith("1:") else other
    assert mine not in scene.post("/heartbeat", A)["holding"]
    assert len(scene.post("/heartbeat", A)["holding"]) == 1
    assert scene.commit(A, mine, names) == "unknown"
    assert scene.post("/died", A, lease=mine, group=names, reason="x") == {"groups": [], "convicted": {}}
    assert scene.post("/working", A, lease=mine, group=[]) is None


def test_a_picture_that_ends_processes_is_blamed_in_its_own_job(scene: Scene) -> None:
    scene.add(1, [A], 1)
    other = scene.add(2, [A], 1)
    lease, names = scene.lease(A)
    while not lease.startswith("1:"):
        lease, names = scene.lease(A, [lease])

    scene.post("/died", A, lease=lease, group=names, reason="SIGSEGV")
    scene.post("/working", A, lease=lease, group=names)
    convicted = scene.post("/died", A, lease=lease, group=names, reason="SIGSEGV")["convicted"]

    assert convicted == {names[0]: "SIGSEGV"}
    assert [record.kind for record in scene.papers["2"].records] == []
    assert other.fault is None


def test_a_worker_that_ends_over_suspects_of_one_job_makes_none_in_the_others(scene: Scene) -> None:
    scene.add(1, [A], 2)
    scene.add(2, [A], 2)
    one, names = scene.lease(A)
    other, _ = scene.lease(A, [one])
    scene.post("/died", A, lease=one, group=names, reason="SIGSEGV")
    scene.post("/working", A, lease=one, group=names)
    container = Container(Seat("worker", 0, A), f"{A}-1", f"{A}:8042")

    then = scene.workers.on_end(container, End(Exit.KILLED, 137, "killed"))

    innocent = other.partition(":")[0]
    assert then is Then.EXPECTED
    assert not [record for record in scene.papers[innocent].records if record.kind == "died"]
    assert [record for record in scene.papers[one[0]].records if record.kind == "died"]
    assert all(len(attempt.failures) == 1 for attempt in scene.attempts.values()), "both reports tell of it"
    assert not any(attempt.failures[0].counts for attempt in scene.attempts.values()), "and none blames the node"


@pytest.mark.parametrize(
    ("status", "counts"), [(-102, False), (-105, False), (-106, False), (-100, True), (-101, True), (137, True)]
)
def test_what_yarn_takes_away_stands_in_a_job_s_report_and_does_not_speak_against_the_node(
    scene: Scene, status: int, counts: bool
) -> None:
    scene.add(1, [A, B], 2)
    container = Container(Seat("worker", 0, A), f"{A}-1", f"{A}:8042")

    scene.workers.on_end(container, End(exit_of(status), status))

    told = [(one.node_name, one.counts) for one in scene.attempts["1"].failures]
    noted = [(record.body["node_name"], record.body["counts"]) for record in scene.papers["1"].records]
    assert told == noted == [(A, counts)]


def test_an_end_that_an_image_was_to_blame_for_is_told_once_that_is_known_and_no_other(scene: Scene) -> None:
    job = scene.add(1, [A], 2)
    scene.add(2, [A], 1)
    for number in (1, 2, 3):
        if number > 1:
            scene.start(A, number)
        held: list[str] = []
        while "lease" in (answer := scene.take(A, held, number)):
            lease = answer["lease"]
            held.append(lease["lease"])
            for group in lease["groups"] if lease["lease"].startswith("1:") else ():
                of_group = [item[0] for item in group["items"]]
                if number > 1 and of_group == [f"/in1/{A}0"]:
                    scene.post("/working", A, number, lease=lease["lease"], group=of_group)
        assert scene.workers.pop_excused() == [], "nothing is known yet"
        container = Container(Seat("worker", 0, A), f"{A}-{number}", f"{A}:8042")
        then = scene.workers.on_end(container, End(Exit.KILLED, 137, "killed"))
        assert (then is Then.AGAIN) == (number == 1), "by then nothing was suspected"

    assert scene.workers.pop_excused() == [f"{A}-1"]
    assert scene.workers.pop_excused() == []
    assert job.fault is None


def test_a_worker_that_is_lost_gives_back_what_it_held_of_every_job(scene: Scene) -> None:
    scene.add(1, [A, B], 1)
    scene.add(2, [A, B], 1)
    one, _ = scene.lease(A)
    scene.lease(A, [one])
    container = Container(Seat("worker", 0, A), f"{A}-1", f"{A}:8042")

    assert scene.workers.on_end(container, End(Exit.PREEMPTED, -102)) is Then.AGAIN
    with pytest.raises(Gone):
        scene.take(A)
    done = set()
    while "lease" in (answer := scene.take(B)):
        scene.now += 0.1
        lease, names = (
            answer["lease"]["lease"],
            [one[0] for group in answer["lease"]["groups"] for one in group["items"]],
        )
        scene.commit(B, lease, names)
        done.update(names)
    assert done == {f"/in{number}/{node}0" for number in (1, 2) for node in (A, B)}
    scene.start(A, 2)
    assert "wait" in scene.take(A, number=2), "and its next one may work again"


def test_a_job_whose_journal_fails_or_that_is_wrong_itself_leaves_the_others_alone(scene: Scene) -> None:
    broken, fine = scene.add(1, [A], 2), scene.add(2, [A], 2)
    held = dict([scene.lease(A)])
    held |= dict([scene.lease(A, list(held))])
    scene.papers["1"].fails = True

    answers = {lease[0]: scene.commit(A, lease, names) for lease, names in held.items()}

    assert answers == {"1": "unknown", "2": "accepted"}
    assert isinstance(broken.fault, HadoopError)
    assert fine.fault is None
    assert scene.take(A)["lease"]["lease"].startswith("2:")


def test_workers_hear_that_all_is_done_when_the_pool_ends_and_wait_before(scene: Scene) -> None:
    assert scene.take(A) == {"wait": pytest.approx(0.1)}
    scene.workers.end()

    assert scene.take(A) == {"done": True}


def test_nodes_are_ready_once_their_worker_has_asked_and_until_it_ends(scene: Scene) -> None:
    assert scene.workers.ready() == []
    scene.take(A)
    assert scene.workers.ready() == [A]
    scene.start(A, 2)
    assert scene.workers.ready() == []


def test_speeds_of_jobs_that_were_at_work_at_once_are_not_kept(scene: Scene) -> None:
    alone = scene.add(1, [A], 1)
    assert not alone._work._is_shared  # type: ignore[union-attr]

    scene.add(2, [A], 1)

    assert all(job._work._is_shared for job in scene.workers.jobs())  # type: ignore[union-attr]


def test_a_job_has_a_folder_within_the_pool_s_and_its_record_where_all_are(scene: Scene) -> None:
    spec: JobSpec = scene.add(3, [A], 1).spec

    assert spec.job_id == "pool_1_0001_3"
    assert spec.staging == "/user/me/.nodewise/application_1_0001/jobs/3"
    assert spec.owners_folder == POOL_SPEC.owners_folder == "/user/me/.nodewise"
    assert (spec.kind, spec.application_id) == ("classify", "application_1_0001")


def test_a_pool_is_for_kinds_that_divide_items() -> None:
    pool = Attempt(1, POOL_SPEC, NONE, NONE, Paper(), "", (), 0.0, lambda: 0.0)
    settings = replace(POOL, of="command", job={"argv": ["true"]})
    job = PooledJob(pool, settings, 1, JobWish(key="1", input="/in", output="/out", capability="weight"))

    with pytest.raises(JobError, match="a pool cannot do jobs of the kind command: they divide no items"):
        job.take_up(replace(pool, spec=job.spec), NONE)


def test_a_job_that_ends_while_it_is_looked_at_ends_nothing_else(scene: Scene) -> None:
    job = scene.add(1, [A], 2)

    class Ending(frozenset[str]):
        """The nodes of a job that another thread lets go of as soon as they are looked at."""

        def __contains__(self, node: object) -> bool:
            job.settle()
            return super().__contains__(node)

    job.nodes = Ending(job.nodes)

    assert not job.is_suspect(Container(Seat("worker", 0, A), f"{A}-1", f"{A}:8042"))
    assert (job.status().of, job._work) == (2, None)


def test_a_job_that_is_killed_waits_no_more_for_hdfs(scene: Scene) -> None:
    job = scene.add(1, [A], 2)
    files: Any = Written()
    lives = Lives(scene.workers, Knowledge(files, NONE), lambda _: None, 1, "photos")
    job.tries = 9  # days
    waiting = threading.Thread(target=lives._pause, args=(job,), daemon=True)
    waiting.start()

    lives.kill(job)

    waiting.join(60)
    assert not waiting.is_alive()
    lives.wait()


def test_a_job_that_has_a_plan_goes_on_without_any_worker_as_all_its_rows_may_be_there(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = scene.add(1, [A], 2)
    scene.workers.remove_job(job)
    files: Any = Written({f"{job.spec.staging}/decision.json": b"{}"})
    job._pool = replace(job._pool, filesystem=files)
    job.state = State.PLANNING
    lives = Lives(scene.workers, Knowledge(files, NONE), lambda _: None, 1, "photos")
    monkeypatch.setattr(job, "begin", lambda _: None)
    assert scene.workers.ready() == []

    lives.begin(job)

    lives.wait()
    assert job.state is State.RUNNING


def test_a_job_that_is_killed_as_it_begins_gets_no_worker(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = scene.add(1, [A], 4)
    scene.workers.remove_job(job)
    scene.take(A)
    job.state, ended = State.PLANNING, threading.Event()
    files: Any = Written()
    lives = Lives(scene.workers, Knowledge(files, NONE), lambda _: ended.set(), 1, "photos")
    add = scene.workers.add_job

    def add_after_its_end(job: PooledJob) -> None:
        assert lives.kill(job) is State.RUNNING
        add(job)

    monkeypatch.setattr(scene.workers, "add_job", add_after_its_end)
    monkeypatch.setattr(job, "begin", lambda _: None)
    lives.begin(job)

    assert ended.wait(60)
    lives.wait()
    assert job.state is State.KILLED
    assert scene.workers.jobs() == []
    assert f"{job.spec.job_id} on" in capsys.readouterr().out
