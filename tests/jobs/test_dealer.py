"""The dealer call by call: whose lease it is, which rows count, who is to blame, what another attempt knows."""

from __future__ import annotations

import dataclasses
import math

import pyarrow as pa
import pytest

from hadoop.errors import HadoopError
from jobs.application.calls import Gone, Refused
from jobs.application.journal import Record
from jobs.errors import JobError
from jobs.images.rows import find_flaw
from jobs.itemwork.blame import DIED
from jobs.itemwork.commits import COMMITTED, Commit, commits
from jobs.itemwork.dealer import Dealer, NodeTotals, remaining
from jobs.itemwork.messages import Task
from locality.leases import Answer, Leases
from locality.types import Part, Plan
from tests.jobs.dealing import LEASE_SECONDS, Job, block, one_node, pictures_of, rows, stored_rows, two_nodes


def take(job: Job, node: str = "a", container: str = "", holding: tuple[str, ...] = ()) -> Task:
    task = job.dealer.take(node, container or f"{node}1", holding)
    assert isinstance(task, Task)
    return task


def names(task: Task) -> list[str]:
    return [picture.name for group in task.groups for picture in group.items]


def commit(job: Job, task: Task, node: str = "a", container: str = "") -> Answer:
    told = rows(node, [*names(task), *task.convicted], task.convicted)
    return job.dealer.commit(node, container or f"{node}1", task.lease, told, 0.5, 100)


def take_all(job: Job, container: str) -> list[Task]:
    """What a new container of a gets until it has to wait."""
    job.dealer.add_container("a", container, 1.0)
    held: list[Task] = []
    while isinstance(offer := job.dealer.take("a", container, [task.lease for task in held]), Task):
        held.append(offer)
    return held


@pytest.fixture
def job() -> Job:
    """Twelve images on a, four on b; containers a1 and b1; 8 images at most a lease."""
    job = two_nodes([block("/f", 1, "a"), block("/p", 11, "a")], [block("/q", 4, "b")])
    job.dealer.add_container("a", "a1", 1.0)
    job.dealer.add_container("b", "b1", 1.0)
    return job


def test_a_lease_has_the_pictures_of_its_parts_in_their_order(job: Job) -> None:
    task = take(job)

    assert task.lease == "1-1"
    assert names(task) == ["/f", *(f"/p#{n}" for n in range(7))]
    assert [group.suspect for group in task.groups] == [False]


def test_a_lease_whose_answer_was_lost_is_given_again_and_no_other_one(job: Job) -> None:
    first = take(job)

    assert take(job) == first
    second = take(job, holding=(first.lease,))
    assert names(second) == [f"/p#{n}" for n in range(7, 11)]
    assert take(job, holding=(second.lease,)) == first
    assert job.dealer.running() == {"a": 12}


def test_a_container_that_is_not_the_current_one_has_to_end(job: Job) -> None:
    with pytest.raises(Gone, match="container a2 is not the one that works for a"):
        job.dealer.take("a", "a2", [])
    task = take(job)
    job.dealer.add_container("a", "a2", 1.0)
    assert job.dealer.running() == {}

    for call in (
        lambda: job.dealer.take("a", "a1", []),
        lambda: commit(job, task),
        lambda: job.dealer.heartbeat("a", "a1"),
        lambda: job.dealer.note_death("a", "a1", task.lease, names(task)[:1], "x"),
        lambda: job.dealer.note_begin("a", "a1", task.lease, names(task)[:1]),
        lambda: job.dealer.take("c", "c1", []),
    ):
        with pytest.raises(Gone):
            call()
    assert job.dealer.left == 16
    assert names(take(job, container="a2")) != []


def test_rows_count_once_and_are_recorded(job: Job) -> None:
    task = take(job)

    assert commit(job, task) is Answer.ACCEPTED
    assert commit(job, task) is Answer.REPEATED

    assert job.dealer.left == 8
    assert sorted(stored_rows(job.paper.records)) == sorted((name, None) for name in names(task))


def test_rows_that_come_after_their_lease_has_ended_are_refused(job: Job) -> None:
    task = take(job)
    job.now += LEASE_SECONDS

    assert commit(job, task) is Answer.EXPIRED
    assert job.dealer.heartbeat("a", "a1") == []
    assert (job.dealer.left, job.paper.records) == (16, [])


def test_of_two_nodes_with_the_same_pictures_the_first_one_counts() -> None:
    job = two_nodes([block("/p", 2, "a")], [block("/q", 1, "b")])
    for node in ("a", "b"):
        job.dealer.add_container(node, f"{node}1", 1.0)
    slow, quick = take(job), take(job, "b")
    job.now += 1
    commit(job, quick, "b")
    job.now += 8
    job.dealer.heartbeat("a", "a1")
    copy = take(job, "b")

    assert names(copy) == names(slow)
    assert commit(job, copy, "b") is Answer.ACCEPTED
    assert commit(job, slow) is Answer.SUPERSEDED
    assert job.dealer.take("a", "a1", []) is None
    outcomes = {(lease.node_name, lease.outcome): lease.end - lease.begin for lease in job.dealer.timeline()}
    assert outcomes == {("a", Answer.SUPERSEDED.value): 9.0, ("b", "accepted"): 0.0}


@pytest.mark.parametrize(
    ("lease", "answer"),
    [("1-1", Answer.ACCEPTED), ("0-1", Answer.EXPIRED), ("2-1", Answer.UNKNOWN), ("1-99", Answer.UNKNOWN)],
)
def test_a_lease_is_known_by_its_attempt_and_number(job: Job, lease: str, answer: Answer) -> None:
    task = take(job)

    assert commit(job, dataclasses.replace(task, lease=lease)) is answer


def test_nobody_commits_the_lease_of_another_node(job: Job) -> None:
    assert commit(job, take(job), "b") is Answer.UNKNOWN


@pytest.mark.parametrize("lease", ["", "1", "1-", "-1-1", "1-1 ", "x-1", "1-1\n"])
def test_what_is_no_lease_is_told_so(job: Job, lease: str) -> None:
    with pytest.raises(Refused, match="write an attempt and a number"):
        job.dealer.commit("a", "a1", lease, b"", 0, 0)


def test_rows_have_to_be_exactly_those_of_the_lease(job: Job) -> None:
    task = take(job)
    own = names(task)
    wrong = {
        "none": [],
        "one is missing": own[1:],
        "one twice": [own[0], *own],
        "one twice for another": [own[0], own[0], *own[2:]],
        "one of another lease": [*own[1:], "/p#9"],
    }
    for told in wrong.values():
        with pytest.raises(Refused, match=f"{len(told)} rows for 8 items"):
            job.dealer.commit("a", "a1", task.lease, rows("a", told), 1, 1)
    with pytest.raises(Refused, match="no Arrow stream"):
        job.dealer.commit("a", "a1", task.lease, b"PAR1", 1, 1)
    table = pa.ipc.open_stream(rows("a", own)).read_all()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.drop_columns(["score"]).schema) as writer:
        writer.write_table(table.drop_columns(["score"]))
    with pytest.raises(Refused, match="the columns of the rows are"):
        job.dealer.commit("a", "a1", task.lease, sink.getvalue().to_pybytes(), 1, 1)
    assert (job.dealer.left, job.paper.records) == (16, [])
    assert commit(job, task) is Answer.ACCEPTED


def test_rows_in_another_order_count(job: Job) -> None:
    task = take(job)

    told = rows("a", reversed(names(task)))
    assert job.dealer.commit("a", "a1", task.lease, told, 1, 1) is Answer.ACCEPTED


@pytest.mark.parametrize("keeps", [False, True])
def test_what_cannot_be_recorded_counts_only_if_it_is_found_later(job: Job, keeps: bool) -> None:
    task = take(job)
    job.paper.fails, job.paper.keeps = True, keeps

    for call in (lambda: commit(job, task), job.dealer.expire, lambda: job.dealer.take("b", "b1", [])):
        with pytest.raises(HadoopError, match="HDFS is away"):
            call()
    assert job.dealer.left == 16

    job.restart()
    job.dealer.add_container("a", "a1", 1.0)
    assert job.dealer.left == (8 if keeps else 16)
    assert commit(job, task) is Answer.EXPIRED


def test_nobody_is_told_that_all_is_done_before_it_is_recorded() -> None:
    job = one_node(block("/p", 2, "a"))
    job.dealer.add_container("a", "a1", 1.0)
    seen = []

    class Watching:
        def append(self, record: Record) -> None:
            seen.append((job.dealer.left, job.dealer.take("a", "a1", [])))

    job.dealer._journal = Watching()
    commit(job, take(job))

    ((left, offer),) = seen
    assert left == 2
    assert isinstance(offer, float)
    assert (job.dealer.left, job.dealer.take("a", "a1", [])) == (0, None)


def test_time_passes_for_leases_only_from_the_first_one_on(job: Job) -> None:
    job.now += 100
    job.dealer.expire()

    assert names(take(job)) == ["/f", *(f"/p#{n}" for n in range(7))]
    assert [lease.begin for lease in job.dealer.timeline()] == []
    job.now += LEASE_SECONDS - 1
    job.dealer.heartbeat("a", "a1")
    assert names(take(job, "b")) == [f"/q#{n}" for n in range(4)]


def test_what_a_container_held_is_given_to_others_when_it_ends(job: Job) -> None:
    task, other = take(job), take(job, "b")
    job.now += 1
    job.dealer.end_container("a", "a0", True, "of an earlier one")
    assert job.dealer.running() == {"a": 8, "b": 4}

    assert job.dealer.end_container("a", "a1", False, "preempted") == {}

    assert job.dealer.running() == {"b": 4}
    given = take(job, "b", holding=(other.lease,))
    assert set(names(given)) <= {*names(task), *(f"/p#{n}" for n in range(7, 11))}
    assert [group.suspect for group in given.groups] == [False], "nobody is to blame"
    assert [(lease.outcome, lease.items) for lease in job.dealer.timeline()] == [("preempted", 8)]
    job.dealer.add_container("a", "a2", 1.0)
    assert isinstance(job.dealer.take("a", "a2", []), Task)


def test_a_node_that_never_got_a_container_gives_its_part_back() -> None:
    job = two_nodes([block("/p", 4, "a")], [block("/q", 1, "b")], steal=False)
    job.dealer.add_container("b", "b1", 1.0)
    task = take(job, "b")
    commit(job, task, "b")
    assert isinstance(job.dealer.take("b", "b1", []), float)

    job.dealer.end_container("a", "", False, "lost")

    assert names(take(job, "b")) == [f"/p#{n}" for n in range(4)]


def test_a_process_that_died_gets_its_group_in_halves_until_one_is_convicted(job: Job) -> None:
    task = take(job)
    own = names(task)
    groups, convicted = job.dealer.note_death("a", "a1", task.lease, own[:4], "signal 11")
    assert [[one.name for one in group.items] for group in groups] == [own[:2], own[2:4]]
    assert [group.suspect for group in groups] == [True, True]

    job.dealer.note_begin("a", "a1", task.lease, own[:2])
    groups, convicted = job.dealer.note_death("a", "a1", task.lease, own[:2], "signal 11")
    assert [[one.name for one in group.items] for group in groups] == [[own[0]], [own[1]]]
    job.dealer.note_begin("a", "a1", task.lease, own[1:2])
    groups, convicted = job.dealer.note_death("a", "a1", task.lease, own[1:2], "signal 11")

    assert (groups, convicted) == ((), {own[1]: "signal 11"})
    again = take(job)
    assert again.convicted == {own[1]: "signal 11"}
    assert sorted(names(again)) == sorted(set(own) - {own[1]})
    assert commit(job, again) is Answer.ACCEPTED
    assert (own[1], "signal 11") in stored_rows(job.paper.records)
    assert job.dealer.totals()["a"].errors == 1


def test_a_death_that_is_told_twice_because_the_answer_was_lost_counts_once(job: Job) -> None:
    task = take(job)
    one = names(task)[:1]

    first = job.dealer.note_death("a", "a1", task.lease, one, "signal 9")

    assert job.dealer.note_death("a", "a1", task.lease, one, "signal 9") == first
    assert len(job.paper.records) == 1
    job.dealer.note_begin("a", "a1", task.lease, one)
    assert job.dealer.note_death("a", "a1", task.lease, one, "signal 9")[1] == {one[0]: "signal 9"}


def test_a_group_has_to_be_of_its_lease(job: Job) -> None:
    task = take(job)
    for group in ([], ["/q#0"], [names(task)[0], "/elsewhere"]):
        with pytest.raises(Refused, match="the group has to be of items of its lease"):
            job.dealer.note_death("a", "a1", task.lease, group, "x")
    with pytest.raises(Refused, match="the group has to be of items of its lease"):
        job.dealer.note_begin("a", "a1", task.lease, ["/q#0"])
    assert job.dealer.note_death("a", "a1", "0-1", ["/q#0"], "x") == ((), {}), "of a lease that ended nothing is kept"


def test_a_container_that_ends_by_its_pictures_makes_suspects_of_what_it_announced(job: Job) -> None:
    task = take(job)
    own = names(task)
    job.dealer.note_death("a", "a1", task.lease, own[:2], "signal 9")
    assert not job.dealer.is_suspect("a", "a1")
    job.dealer.note_begin("a", "a1", task.lease, own[:1])

    assert job.dealer.is_suspect("a", "a1")
    assert not job.dealer.is_suspect("a", "a2")
    assert job.dealer.end_container("a", "a1", True, "memory kill") == {}
    held = take_all(job, "a2")
    (lease,) = {task.lease for task in held if own[0] in names(task)}
    job.dealer.note_begin("a", "a2", lease, own[:1])
    assert job.dealer.end_container("a", "a2", True, "memory kill") == {own[0]: "memory kill"}

    given = take_all(job, "a3")
    suspects = {one.name for task in given for group in task.groups if group.suspect for one in group.items}
    assert suspects == {own[1]}
    assert {name: why for task in given for name, why in task.convicted.items()} == {own[0]: "memory kill"}


def test_a_container_that_announced_nothing_makes_suspects_of_all_that_needed_no_announcement(job: Job) -> None:
    task = take(job)
    own = names(task)
    job.dealer.note_death("a", "a1", task.lease, own[:1], "signal 9")
    job.dealer.note_begin("a", "a1", task.lease, own[:1])
    job.dealer.note_begin("a", "a1", task.lease, [])

    assert job.dealer.end_container("a", "a1", True, "memory kill") == {}

    death = job.paper.records[-1].body
    assert (sorted(death["names"]), death["reason"]) == (sorted(own[1:]), "memory kill")


def test_an_announcement_ends_when_its_group_died(job: Job) -> None:
    task = take(job)
    own = names(task)
    for group in (own[:4], own[:2]):
        job.dealer.note_begin("a", "a1", task.lease, group)
        job.dealer.note_death("a", "a1", task.lease, group, "signal 9")

    job.dealer.end_container("a", "a1", True, "memory kill")

    assert job.paper.records[-1].body["names"] == own[4:]


def test_an_announcement_ends_with_its_lease(job: Job) -> None:
    task = take(job)
    other = take(job, holding=(task.lease,))
    job.dealer.note_death("a", "a1", other.lease, names(other)[:1], "signal 9")
    job.dealer.note_begin("a", "a1", other.lease, names(other)[:1])
    commit(job, other)

    job.dealer.end_container("a", "a1", True, "memory kill")

    assert job.paper.records[-1].body["names"] == names(task)


def test_a_conviction_of_an_earlier_attempt_stands_whatever_led_to_it(job: Job) -> None:
    body = {"names": ["/f"], "reason": "hung", "container": False, "convicted": {"/f": "hung"}}
    job.paper.records.append(Record(DIED, body))
    job.restart()

    job.dealer.add_container("a", "a1", 1.0)
    assert take(job).convicted == {"/f": "hung"}


def test_what_happened_is_added_up_for_each_node(job: Job) -> None:
    job.now = 2.0
    first = take(job)
    job.now = 3.0
    second = take(job, holding=(first.lease,))
    job.now = 5.0
    commit(job, second)
    job.now = 6.0
    commit(job, first)
    job.now = 8.0
    stolen = take(job)
    job.now = 9.0
    commit(job, stolen)

    assert job.dealer.totals()["a"] == NodeTotals(
        items=14,
        errors=0,
        local_items=12,
        bytes_read=300,
        moved_bytes=200,
        busy_seconds=5.0,
        first_take=2.0,
        last_commit=9.0,
    )
    assert job.dealer.totals()["a"].seconds == 7.0
    assert job.dealer.first_result_seconds == 5.0
    told = [(one.begin, one.end, one.items, one.local_items, one.origin) for one in job.dealer.timeline()]
    assert told == [(2.0, 6.0, 8, 8, "a"), (3.0, 5.0, 4, 4, "a"), (8.0, 9.0, 2, 0, "b")]
    assert (job.dealer.last_heard("a"), job.dealer.last_heard("b")) == (9.0, -math.inf)


def test_a_lease_of_a_silent_node_ends_when_it_was_heard_last(job: Job) -> None:
    take(job)
    job.now += 3
    job.dealer.heartbeat("a", "a1")
    job.now += LEASE_SECONDS + 5
    job.dealer.expire()

    (lease,) = job.dealer.timeline()
    assert (lease.begin, lease.end, lease.outcome) == (0.0, 3.0, Answer.EXPIRED.value)
    assert job.dealer.totals()["a"].busy_seconds == 3.0


def test_another_attempt_knows_what_was_committed_and_who_is_suspect(job: Job) -> None:
    task = take(job)
    own = names(task)
    for group in (own[:2], own[:1]):
        job.dealer.note_begin("a", "a1", task.lease, group)
        job.dealer.note_death("a", "a1", task.lease, group, "signal 9")
    other = take(job, holding=(task.lease,))
    commit(job, other)
    before = (job.dealer.totals()["a"].items, job.dealer.timeline(), job.dealer.first_result_seconds)

    job.restart()

    assert (job.dealer.totals()["a"].items, job.dealer.timeline(), job.dealer.first_result_seconds) == before
    assert job.dealer.left == 12
    job.dealer.add_container("a", "a1", 1.0)
    again = take(job)
    assert again.lease.startswith("2-")
    assert (again.convicted, [group.suspect for group in again.groups]) == ({own[0]: "signal 9"}, [False, True])


def test_the_journal_counts_under_the_names_that_earlier_versions_read() -> None:
    commit = Commit("a", "a1", "1-1", "a", [("/f", 0, 3)], 1.0, 2.0, 3, 1, 2, 30, 10, 0.5, b"rows")
    record = commit.to_record()

    assert (record.body["images"], record.body["local_images"]) == (3, 2)
    assert not {"items", "local_items", "rows"} & set(record.body)
    assert list(commits([record])) == [commit]


def test_what_is_left_is_the_plan_without_what_was_committed() -> None:
    one, packed = block("/f", 1, "a"), block("/p", 10, "a")
    plan = Plan({"a": (Part(one, 0, 1), Part(packed, 0, 6)), "b": (Part(packed, 6, 4),), "c": ()})

    def done(*parts: tuple[str, int, int]) -> Record:
        whole = {"node_name": "a", "container_id": "a1", "lease": "1-1", "origin": None, "parts": parts}
        numbers = ("begin", "end", "images", "errors", "local_images", "bytes_read", "moved_bytes", "compute_seconds")
        return Record(COMMITTED, {**whole, **dict.fromkeys(numbers, 0)})

    records = [done(("/f", 0, 1), ("/p", 4, 3)), Record("other"), done(("/p", 2, 1)), done(("/p", 2, 1))]

    assert remaining(plan, []) == plan
    assert remaining(plan, records).parts == {
        "a": (Part(packed, 0, 2), Part(packed, 3, 1)),
        "b": (Part(packed, 7, 3),),
        "c": (),
    }


def test_an_input_that_was_changed_ends_the_job(job: Job) -> None:
    leases = Leases(job.plan, {"a": 1.0}, 0.0)
    dealer = Dealer(leases, lambda part: pictures_of(part)[1:], find_flaw, job.paper, 1, lambda: 0.0)
    dealer.add_container("a", "a1", 1.0)

    with pytest.raises(JobError, match="/f has 0 items where 1 were planned"):
        dealer.take("a", "a1", [])


@pytest.mark.parametrize("kept", [True, False])
def test_a_node_whose_container_is_starting_keeps_its_part_and_nobody_else_does(kept: bool) -> None:
    job = two_nodes([block("/p", 4, "a")], [block("/q", 1, "b")], steal=False)
    job.dealer.add_container("b", "b1", 1.0)
    commit(job, take(job, "b"), "b")
    for _ in range(40):
        job.now += 1
        if kept:
            job.dealer.note_starting("a")
        offer = job.dealer.take("b", "b1", [])
    assert isinstance(offer, float) == kept

    job.dealer.note_starting("nobody")
    job.now += 3 * LEASE_SECONDS
    assert isinstance(job.dealer.take("b", "b1", []), Task), "not for ever"


def test_a_lease_whose_pictures_could_not_be_read_is_given_when_they_can(job: Job) -> None:
    leases = Leases(job.plan, {"a": 1.0}, 0.0)
    away = [HadoopError("HDFS is away")]

    def look_up(part: Part) -> object:
        if away:
            raise away.pop()
        return pictures_of(part)

    dealer = Dealer(leases, look_up, find_flaw, job.paper, 1, lambda: 0.0)  # type: ignore[arg-type]
    dealer.add_container("a", "a1", 1.0)
    with pytest.raises(HadoopError):
        dealer.take("a", "a1", [])

    task = dealer.take("a", "a1", [])
    assert isinstance(task, Task)
    assert task.lease == "1-1"
