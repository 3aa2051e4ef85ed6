"""Single pictures in a pool: who gets them, what those who asked hear, and what becomes of one that ends workers."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from jobs.application.calls import Request
from jobs.application.coordinator import Container, End, Seat, Then
from jobs.application.exits import Exit
from jobs.itemwork.messages import Item, Task
from jobs.kinds.pool import pictures as pictures_module
from jobs.kinds.pool import workers as workers_module
from jobs.kinds.pool.wishes import Picture, Refusal
from tests.jobs.test_pool_workers import A, B, Scene

LONG = 60.0
"""Seconds that nothing of these tests takes, unless it never comes."""
KILLED = End(Exit.KILLED, 137, "SIGKILL")


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


class Asking:
    """A pool, and users that ask it about pictures, each in a thread of its own."""

    def __init__(self) -> None:
        self.scene = Scene()
        self._threads = ThreadPoolExecutor(64)

    def ask(self, *names: str) -> list[Future[Any]]:
        """One after the other, so that they wait in this order; what a picture holds is its name."""
        asked = []
        for name in names:
            before = self.scene.pictures.in_hand
            wish, content = Picture(name=name, seconds=LONG), name.encode()
            ask = self.scene.pictures.ask
            asked.append(self._threads.submit(ask, wish, content, len(content), self.scene.workers.call))
            self._wait_beyond(before)
        return asked

    def _wait_beyond(self, before: int) -> None:
        until(lambda: self.scene.pictures.in_hand > before)

    def wait(self, node: str) -> Future[Any]:
        """What a worker that has nothing to do hears; it waits by now."""
        answer = self._threads.submit(self.scene.post, "/take", node, holding=[], patience=LONG)
        until(lambda: node in self.scene.workers._waiting or answer.done())
        return answer

    def end(self, node: str, number: int, end: End) -> Then:
        return self.scene.workers.on_end(Container(Seat("worker", 0, node), f"{node}-{number}", ""), end)

    def leave(self) -> None:
        """Nobody waits for a row any more."""
        for asked in list(self.scene.pictures._asked.values()):
            asked.answer({})

    def close(self) -> None:
        self.leave()
        self.scene.workers.end()
        self._threads.shutdown()


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asking]:
    monkeypatch.setattr(workers_module, "LONGEST_PATIENCE", LONG)
    monkeypatch.setattr(workers_module, "CHOOSY_SECONDS", LONG)
    made = Asking()
    yield made
    made.close()


def test_what_waits_is_one_batch_and_each_who_asked_gets_the_row_of_his_picture(asking: Asking) -> None:
    asked = asking.ask("cat.jpg", "dog.jpg", "bad.jpg")

    lease = asking.scene.take(A)["lease"]

    task = Task.from_json(lease)
    assert task.urgent
    assert [item.content for group in task.groups for item in group.items] == [b"cat.jpg", b"dog.jpg", b"bad.jpg"]
    names = [item.name for group in task.groups for item in group.items]
    assert asking.scene.commit(A, task.lease, names, {names[2]: "not an image"}) == "accepted"
    rows = [one.result(LONG) for one in asked]
    assert [(row["path"], row["error"], row["node_name"], row["together"]) for row in rows] == [
        ("cat.jpg", None, A, 3),
        ("dog.jpg", None, A, 3),
        ("bad.jpg", "not an image", A, 3),
    ]
    assert all(row["milliseconds"] > 0 and row["work_milliseconds"] == pytest.approx(100) for row in rows)
    assert asking.scene.pictures.in_hand == 0


def test_a_file_of_hdfs_is_named_as_the_user_did_and_read_by_the_worker(asking: Asking) -> None:
    wish = Picture(name="hdfs:///data/a.jpg", path="/data/a.jpg", seconds=LONG)
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(asking.scene.pictures.ask, wish, None, 7, lambda: None)
        until(lambda: asking.scene.pictures.in_hand)
        (group,) = Task.from_json(asking.scene.take(A)["lease"]).groups
        (item,) = group.items
        assert (item.path, item.offset, item.length, item.content) == ("/data/a.jpg", None, 7, None)
        asking.scene.commit(A, *asking.scene.lease(A))

        assert asked.result(LONG)["path"] == "hdfs:///data/a.jpg"


def test_what_is_more_than_one_batch_goes_to_the_next_that_asks(asking: Asking) -> None:
    asking.ask(*"abcdef")

    first, second = asking.scene.lease(A)[1], asking.scene.lease(B)[1]

    assert (len(first), len(second)) == (4, 2)
    assert not set(first) & set(second)


def test_a_fault_of_ours_is_told_to_whoever_waits_and_ends_nothing_else(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    (asked,) = asking.ask("a")
    lease, names = asking.scene.lease(A)
    with monkeypatch.context() as broken:
        broken.setattr(pictures_module, "errors_in", None)
        assert asking.scene.commit(A, lease, names) == "unknown"
    assert asked.result(LONG)["error"].startswith("the pool's master failed: TypeError: ")

    (asked,) = asking.ask("a")
    assert asking.scene.commit(A, *asking.scene.lease(A)) == "accepted"
    assert asked.result(LONG)["error"] is None


def test_an_answer_that_was_lost_is_given_again(asking: Asking) -> None:
    asking.ask("a")

    lease, names = asking.scene.lease(A)

    assert asking.scene.lease(A) == (lease, names)
    assert "wait" in asking.scene.take(A, [lease])
    assert asking.scene.post("/heartbeat", A)["holding"] == [lease]
    assert asking.scene.post("/heartbeat", B)["holding"] == []


@pytest.mark.parametrize(("limit", "most"), [("MOST_PICTURES", 2), ("MOST_BYTES", 2)])
def test_who_asks_a_full_pool_is_refused_at_once(
    asking: Asking, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    monkeypatch.setattr(pictures_module, limit, most)
    asking.ask("a", "b")

    with pytest.raises(Refusal, match="the pool photos is full: it has 2 single pictures in hand") as refused:
        asking.scene.pictures.ask(Picture(name="c"), b"c", 1, lambda: None)

    assert refused.value.passes
    assert asking.scene.commit(A, *asking.scene.lease(A)) == "accepted"


def test_pictures_that_workers_have_fill_a_pool_also_when_nobody_waits_for_them_any_more(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures_module, "MOST_BYTES", 2)
    asking.ask("a", "b")
    lease, names = asking.scene.lease(A)
    asking.leave()
    until(lambda: asking.scene.pictures.in_hand == 0)

    with pytest.raises(Refusal, match="the pool photos is full: it has 2 single pictures in hand"):
        asking.scene.pictures.ask(Picture(name="c"), b"c", 1, lambda: None)
    asking.scene.commit(A, lease, names)

    asking.ask("c")


def test_who_gets_no_row_in_time_hears_why_and_is_forgotten(asking: Asking) -> None:
    scene, wish = asking.scene, Picture(name="slow", seconds=0.1)
    with pytest.raises(Refusal, match=r"the pool photos has no row of slow after 0\.1 s: no worker was free for it"):
        scene.pictures.ask(wish, b"x", 1, scene.workers.call)
    assert "wait" in scene.take(A)

    asking.ask("slow")
    scene.take(A)
    (taken,) = scene.pictures._asked.values()
    assert "the worker on alpha did not answer" in scene.pictures._late(taken, 0.1).refused

    for node in (A, B):
        asking.end(node, 1, KILLED)
    with pytest.raises(Refusal, match="no worker was there"):
        scene.pictures.ask(wish, b"x", 1, scene.workers.call)
    assert scene.pictures.in_hand == 1


def test_a_row_that_nobody_waits_for_any_more_is_taken_all_the_same(asking: Asking) -> None:
    asking.ask("slow")
    lease, names = asking.scene.lease(A)
    asking.leave()
    until(lambda: asking.scene.pictures.in_hand == 0)

    assert asking.scene.commit(A, lease, names) == "accepted"
    assert asking.scene.commit(A, lease, names) == "unknown"


def test_a_picture_that_ends_processes_is_blamed_and_its_neighbour_has_its_row(asking: Asking) -> None:
    scene, asked = asking.scene, asking.ask("deadly.jpg", "fine.jpg")
    lease, names = scene.lease(A)

    told = scene.post("/died", A, lease=lease, group=names, reason="SIGSEGV")
    assert [(len(group["items"]), group["suspect"]) for group in told["groups"]] == [(1, True), (1, True)]
    assert told["convicted"] == {}
    scene.post("/working", A, lease=lease, group=names[:1])
    told = scene.post("/died", A, lease=lease, group=names[:1], reason="SIGSEGV")

    assert told == {"groups": [], "convicted": {names[0]: "SIGSEGV"}}
    assert scene.commit(A, lease, names, {names[0]: "SIGSEGV"}) == "accepted"
    assert [one.result(LONG)["error"] for one in asked] == ["SIGSEGV", None]


def test_a_picture_that_ends_workers_is_tried_alone_elsewhere_and_then_blamed(asking: Asking) -> None:
    scene, asked = asking.scene, asking.ask("deadly.jpg")
    scene.lease(A)
    assert asking.end(A, 1, KILLED) is Then.AGAIN
    late = asking.ask("fine.jpg")
    scene.start(A, 2)

    for node, number in ((B, 1), (A, 2)):
        (group,) = Task.from_json(scene.take(node, number=number)["lease"]).groups
        lease = scene.take(node, number=number)["lease"]["lease"]
        assert group.suspect
        assert [item.content for item in group.items] == [b"deadly.jpg"], "and nothing beside it"
        scene.post("/working", node, number, lease=lease, group=[group.items[0].name])
        assert asking.end(node, number, KILLED) is Then.EXPECTED

    assert "SIGKILL" in asked[0].result(LONG)["error"]
    scene.start(B, 1)
    assert scene.commit(B, *scene.lease(B)) == "accepted"
    assert late[0].result(LONG)["error"] is None


def test_a_worker_that_ends_while_it_asks_gets_nothing_and_its_next_one_what_waits(asking: Asking) -> None:
    scene, asked = asking.scene, asking.ask("a")
    asking.end(A, 1, KILLED)
    late = Request("", json.dumps({"node_name": A, "container_id": f"{A}-1", "holding": []}).encode())

    assert scene.pictures.hear("/take", late) == {}
    scene.start(A, 1)

    assert scene.commit(A, *scene.lease(A)) == "accepted"
    assert asked[0].result(LONG)["error"] is None


def test_a_worker_that_is_taken_away_makes_no_suspects_and_what_it_had_goes_first(asking: Asking) -> None:
    scene, asked = asking.scene, asking.ask("a", "b")
    scene.lease(A)
    asked += asking.ask("c")

    asking.end(A, 1, End(Exit.PREEMPTED, -102))

    task = Task.from_json(scene.take(B)["lease"])
    assert [(group.suspect, [item.content for item in group.items]) for group in task.groups] == [
        (False, [b"a", b"b", b"c"])
    ]
    scene.commit(B, *scene.lease(B))
    assert [one.result(LONG)["path"] for one in asked] == ["a", "b", "c"]


def test_what_a_silent_worker_has_goes_to_another_one_and_its_rows_come_too_late(asking: Asking) -> None:
    scene, asked = asking.scene, asking.ask("a")
    lease, names = scene.lease(A)
    scene.now += 9
    scene.workers.give_back(10.0)
    assert "wait" in scene.take(B)
    scene.now += 2
    scene.workers.give_back(10.0)

    other, same = scene.lease(B)

    assert same == names
    assert scene.commit(A, lease, names) == "unknown"
    assert scene.commit(B, other, names) == "accepted"
    assert asked[0].result(LONG)["node_name"] == B


def test_a_picture_that_ends_a_worker_that_had_been_silent_is_blamed_and_holds_up_no_other(asking: Asking) -> None:
    scene, asked = asking.scene, asking.ask("deadly.jpg")
    scene.lease(A)
    asking.end(A, 1, KILLED)
    for node, number in ((A, 2), (B, 2)):
        scene.start(node, number)
        lease = scene.take(node, number=number)["lease"]
        name = Task.from_json(lease).groups[0].items[0].name
        scene.post("/working", node, number, lease=lease["lease"], group=[name])
        if node == A:
            asking.end(node, number, KILLED)
    scene.now += 11
    scene.workers.give_back(10.0)
    asked += asking.ask("fine.jpg")

    assert asking.end(B, 2, KILLED) is Then.EXPECTED

    assert "SIGKILL" in asked[0].result(LONG)["error"]
    scene.start(A, 1)
    assert scene.commit(A, *scene.lease(A)) == "accepted"
    assert asked[1].result(LONG)["error"] is None


@pytest.mark.parametrize("path", ["/working", "/died"])
def test_a_worker_that_was_silent_over_a_suspect_and_got_through_it_is_not_thought_to_be_at_it_for_ever(
    asking: Asking, path: str
) -> None:
    scene, _ = asking.scene, asking.ask("deadly.jpg")
    scene.lease(A)
    asking.end(A, 1, KILLED)
    scene.start(A, 2)
    lease = scene.take(A, number=2)["lease"]
    name = Task.from_json(lease).groups[0].items[0].name
    scene.post("/working", A, 2, lease=lease["lease"], group=[name])
    scene.now += 11
    scene.workers.give_back(10.0)

    body: dict[str, Any] = {"group": []} if path == "/working" else {"group": [name], "reason": "SIGSEGV"}
    scene.post(path, A, 2, lease=lease["lease"], **body)

    assert asking.end(A, 2, KILLED) is Then.AGAIN


def test_pictures_and_jobs_share_a_worker_and_neither_starves(asking: Asking) -> None:
    scene = asking.scene
    job = scene.add(1, [A], 200)
    asked = asking.ask(*(f"picture{number}" for number in range(40)))
    given = {"1": 0, "pictures": 0}

    while given["pictures"] < len(asked):
        scene.now += 0.1
        lease, names = scene.lease(A)
        assert scene.commit(A, lease, names) == "accepted"
        given[lease.partition(":")[0]] += len(names)

    assert 20 <= given["1"] <= 80
    assert all(one.result(LONG)["error"] is None for one in asked)
    assert job._work._is_shared  # type: ignore[union-attr]


def test_a_worker_that_waits_hears_at_once_of_a_picture_of_a_job_and_of_the_end(asking: Asking) -> None:
    scene = asking.scene

    waits = asking.wait(A)
    (asked,) = asking.ask("a")
    lease = waits.result(LONG)["lease"]
    scene.commit(A, lease["lease"], [item.name for item in Task.from_json(lease).groups[0].items])
    assert asked.result(LONG)["path"] == "a"

    waits = asking.wait(A)
    job = scene.add(1, [A], 1)
    assert waits.result(LONG)["lease"]["lease"].startswith("1:")
    scene.workers.remove_job(job)

    waits = asking.wait(A)
    scene.workers.end()
    assert waits.result(LONG) == {"done": True}


def test_a_worker_without_anything_to_do_asks_again_at_once_when_its_patience_is_over(asking: Asking) -> None:
    assert asking.scene.post("/take", A, holding=[], patience=0.05) == {"wait": 0.0}


def learn(scene: Scene, **seconds: float) -> None:
    """What a picture took each node so far."""
    for node, took in seconds.items():
        scene.pace.give(node, "0:1", 1, scene.now)
        scene.pace.end(node, "0:1", took)


def test_of_the_workers_that_wait_the_fastest_gets_the_picture(asking: Asking) -> None:
    learn(asking.scene, alpha=0.5, beta=0.01)
    slow, fast = asking.wait(A), asking.wait(B)

    asking.ask("a")

    assert "lease" in fast.result(LONG)
    assert not slow.done()


def test_a_picture_waits_for_a_faster_worker_that_is_busy_but_not_for_long(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = asking.scene
    learn(scene, alpha=0.01, beta=30.0)
    scene.take(A)
    scene.pace.give(A, "0:2", 3, scene.now)
    asking.ask("a")

    assert "wait" in scene.take(B)
    monkeypatch.setattr(workers_module, "CHOOSY_SECONDS", 0.0)

    assert scene.commit(B, *scene.lease(B)) == "accepted"


def test_pictures_of_an_answer_that_was_lost_are_given_again_also_while_a_faster_worker_is_waited_for(
    asking: Asking,
) -> None:
    scene = asking.scene
    learn(scene, alpha=30.0, beta=0.01)
    scene.take(B)
    asking.ask("a")
    lease, names = scene.lease(A)
    scene.pace.give(B, "0:2", 1, scene.now)
    asking.ask("b")

    assert scene.lease(A) == (lease, names)
    assert "wait" in scene.take(A, [lease]), "b is for the other worker"


def test_a_row_that_is_too_large_to_be_answered_is_an_error(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures_module, "LARGEST_ANSWER", 10)
    (asked,) = asking.ask("a")

    asking.scene.commit(A, *asking.scene.lease(A))

    assert "10 are answered: a job stores them" in asked.result(LONG)["error"]


def test_who_asked_stays_alone_when_workers_are_called_from_many_threads(asking: Asking) -> None:
    """Every picture has exactly one row, whoever looks at it."""
    stop = threading.Event()

    def work(node: str) -> None:
        while not stop.is_set():
            answer = asking.scene.post("/take", node, holding=[], patience=0.05)
            if "lease" in answer:
                names = [item.name for group in Task.from_json(answer["lease"]).groups for item in group.items]
                asking.scene.commit(node, answer["lease"]["lease"], names)

    threads = [threading.Thread(target=work, args=(node,)) for node in (A, B)]
    for thread in threads:
        thread.start()
    try:
        names = [f"picture{number}" for number in range(50)]
        ask = asking.scene.pictures.ask
        with ThreadPoolExecutor(10) as users:
            wishes = [Picture(name=name, seconds=LONG) for name in names]
            rows = list(users.map(lambda wish: ask(wish, b"x", 1, asking.scene.workers.call), wishes))
    finally:
        stop.set()
        for thread in threads:
            thread.join(LONG)

    assert [row["path"] for row in rows] == names
    assert asking.scene.pictures.in_hand == 0


@pytest.mark.parametrize(
    "item", [Item("a", "/a", None, 3), Item("n", "/p", 7, 3), Item("s", "", None, 3, b"\xff\x00a")]
)
def test_an_item_travels_with_its_bytes_or_without(item: Item) -> None:
    assert Item.from_json(item.to_json()) == item
