"""Tasks as the service keeps them: how they begin, change, end and go, against a service on each kind of database."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from infosvc.core.service import components_of
from infosvc.tasks import retention
from infosvc.wire.errors import Conflict, InvalidInput, NotFound
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskNews, TaskState
from tests.infosvc.task_users import as_user

if TYPE_CHECKING:
    from tests.infosvc.conftest import Hands, Served, Serving

SPEC = TaskSpec(["python3", "dir/train.py"], variables={"SEED": "1"}, memory_mb=2048, attempts=2)
QUEUED, RUNNING = TaskState.QUEUED, TaskState.RUNNING
NEWS = TaskNews(RUNNING, application_id="application_1_0001", node_name="n1", attempt=1)


def ended(service: Served, task: Task, state: TaskState = TaskState.SUCCEEDED, reason: str | None = None) -> Task:
    """The task after a submitter said how it ended."""
    return service.client.put_task_news(task.task_id, TaskNews(state, reason=reason))


def test_a_task_goes_from_queued_to_its_end_by_the_clock_of_the_service(service: Served, hands: Hands) -> None:
    made = service.client.submit_task(SPEC)
    assert (made.owner, made.name, made.state, made.spec) == ("admin", "python3", QUEUED, SPEC)
    assert made.created_at == made.changed_at == hands.epoch + hands.now and made.ended_at is None
    hands.turn(5)
    running = service.client.put_task_news(made.task_id, NEWS)
    hands.turn(5)
    service.client.put_task_news(made.task_id, TaskNews(QUEUED, reason="its node was lost", attempt=2))
    again = service.client.put_task_news(made.task_id, TaskNews(RUNNING, node_name="n2"))
    hands.turn(5)
    done = service.client.put_task_news(made.task_id, TaskNews(TaskState.SUCCEEDED, exit_code=0))

    assert running.started_at == running.changed_at == made.created_at + 5
    assert (again.started_at, again.node_name, again.attempt) == (running.started_at, "n2", 2)
    assert again.application_id == "application_1_0001", "what is left out stays"
    assert (done.ended_at, done.exit_code) == (made.created_at + 15, 0)
    assert service.client.task(made.task_id) == done


def test_one_key_makes_one_task(service: Served) -> None:
    first = service.client.submit_task(SPEC, "k1")
    assert first.task_id == "task_" + hashlib.sha256(b"admin\0k1").hexdigest()[:16]
    assert service.client.submit_task(SPEC, "k1") == first
    assert service.ask("POST", "/api/v1/tasks", SPEC.to_json(), headers={"Idempotency-Key": "k1"}).status == 200
    with pytest.raises(Conflict, match="asks for something else"):
        service.client.submit_task(TaskSpec(["other"]), "k1")
    assert service.client.submit_task(SPEC, "k2").task_id != first.task_id
    assert service.client.submit_task(SPEC).task_id != service.client.submit_task(SPEC).task_id
    assert service.ask("POST", "/api/v1/tasks", SPEC.to_json(), headers={"Idempotency-Key": "a b"}).status == 422


def test_what_is_kept_survives_a_restart(database: str, serve: Serving) -> None:
    with serve(database) as service:
        first = service.client.submit_task(SPEC, "k")
        service.client.submit_task(TaskSpec(["é" * 30_000, "\N{GRINNING FACE}"], after=[first.task_id]))
        ended(service, service.client.submit_task(TaskSpec(["x"])), TaskState.LOST, "nobody knows")
        service.client.put_task_news(first.task_id, NEWS)
        service.client.stop_task(first.task_id)
        before = service.client.tasks()
    with serve(database) as service:
        assert service.client.tasks() == before
        assert service.client.submit_task(SPEC, "k") == service.client.task(first.task_id)
        assert [task.state for task in before] == ["lost", "waiting", "running"] and before[2].stop_asked


def test_a_task_waits_for_those_before_it(service: Served) -> None:
    client = service.client
    first, second = client.submit_task(TaskSpec(["a"])), client.submit_task(TaskSpec(["b"]))
    last = client.submit_task(TaskSpec(["c"], after=[first.task_id, second.task_id]))
    assert last.state is TaskState.WAITING
    with pytest.raises(Conflict, match="cannot become running by news"):
        client.put_task_news(last.task_id, NEWS)
    ended(service, first)
    client.remove_task(first.task_id)  # it had succeeded, whatever became of its row
    assert client.task(last.task_id).state is TaskState.WAITING
    ended(service, second)
    assert client.task(last.task_id).state is QUEUED
    assert client.submit_task(TaskSpec(["d"], after=[second.task_id])).state is QUEUED


def test_what_waits_for_a_task_that_fails_fails_with_it_and_so_on(service: Served) -> None:
    client = service.client
    first = client.submit_task(TaskSpec(["a"]))
    second = client.submit_task(TaskSpec(["b"], after=[first.task_id]))
    third = client.submit_task(TaskSpec(["c"], after=[second.task_id]))
    beside = client.submit_task(TaskSpec(["d"]))
    commits = components_of(service.server.app).writer.commits
    ended(service, first, TaskState.FAILED, "exit code 3")

    assert components_of(service.server.app).writer.commits == commits + 1
    for task, before in ((second, first), (third, second)):
        found = client.task(task.task_id)
        assert (found.state, found.ended_at is not None) == (TaskState.FAILED, True)
        assert f"{before.task_id}, which must succeed before, is failed" in found.reason
    assert "exit code 3" in client.task(third.task_id).reason
    assert client.task(beside.task_id).state is QUEUED
    late = client.submit_task(TaskSpec(["e"], after=[third.task_id]))
    assert (late.state, late.ended_at) == (TaskState.FAILED, late.created_at)


def test_a_stopped_task_takes_those_that_wait_for_it_along(service: Served) -> None:
    first = service.client.submit_task(TaskSpec(["a"]))
    second = service.client.submit_task(TaskSpec(["b"], after=[first.task_id]))
    assert service.client.stop_task(first.task_id).state is TaskState.STOPPED
    assert service.client.task(second.task_id).state is TaskState.FAILED


def test_a_chain_of_many_fails_at_once(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url, calls_per_second=0) as service:
        tasks = [service.client.submit_task(TaskSpec(["a"]))]
        for _ in range(300):
            tasks.append(service.client.submit_task(TaskSpec(["b"], after=[tasks[-1].task_id])))
        ended(service, tasks[0], TaskState.FAILED)
        assert {task.state for task in service.client.tasks()} == {TaskState.FAILED}


def test_predecessors_that_one_does_not_have_are_refused(service: Served) -> None:
    foreign = service.client.submit_task(TaskSpec(["a"]))
    with pytest.raises(InvalidInput, match="has no task task_0123456789abcdef"):
        service.client.submit_task(TaskSpec(["b"], after=["task_0123456789abcdef"]))
    with as_user(service, "maria") as maria, pytest.raises(InvalidInput, match="maria has no task"):
        maria.submit_task(TaskSpec(["b"], after=[foreign.task_id]))


def test_of_an_array_so_many_are_queued_or_run_as_may_at_once_and_the_oldest_comes_next(service: Served) -> None:
    made = [service.client.submit_task(TaskSpec([str(n)], array="sweep", at_once=2)) for n in range(5)]
    other = service.client.submit_task(TaskSpec(["other"], array="another", at_once=1))

    def states() -> str:
        return "".join(service.client.task(one.task_id).state[0] for one in made)

    assert (states(), other.state) == ("qqwww", QUEUED)
    assert made[2].reason == "as many of its array as may run at once are queued or run"
    ended(service, made[1])
    assert states() == "qsqww"
    assert service.client.task(made[2].task_id).reason == ""
    ended(service, made[0], TaskState.FAILED)
    assert states() == "fsqqw", "one that fails leaves its place too"
    service.client.stop_task(made[4].task_id)
    service.client.stop_task(made[3].task_id)
    assert states() == "fsqss"


def test_a_task_of_an_array_waits_for_its_predecessor_and_then_for_a_place(service: Served) -> None:
    before = service.client.submit_task(SPEC)
    first = service.client.submit_task(TaskSpec(["first"], array="sweep", at_once=1))
    after = service.client.submit_task(TaskSpec(["after"], array="sweep", at_once=1, after=(before.task_id,)))
    last = service.client.submit_task(TaskSpec(["last"], array="sweep", at_once=1))
    assert (after.state, last.state) == (TaskState.WAITING, TaskState.WAITING)

    ended(service, first)
    assert service.client.task(last.task_id).state is QUEUED, "the other must wait for another reason"
    ended(service, before)
    assert service.client.task(after.task_id).state is TaskState.WAITING
    ended(service, last)
    assert service.client.task(after.task_id).state is QUEUED


def test_places_are_given_on_when_tasks_of_an_array_fail_with_their_predecessor(service: Served) -> None:
    before = service.client.submit_task(SPEC)
    running = service.client.submit_task(TaskSpec(["a"], array="sweep", at_once=1))
    failing = service.client.submit_task(TaskSpec(["b"], array="sweep", at_once=1, after=(before.task_id,)))
    last = service.client.submit_task(TaskSpec(["c"], array="sweep", at_once=1))

    ended(service, before, TaskState.FAILED)
    ended(service, running)

    assert service.client.task(failing.task_id).state is TaskState.FAILED
    assert service.client.task(last.task_id).state is QUEUED


@pytest.mark.parametrize("state", [state for state in TaskState if state.is_final])
def test_a_final_state_never_changes(service: Served, state: TaskState) -> None:
    task = service.client.submit_task(SPEC)
    done = ended(service, task, state, "so it was")
    assert ended(service, task, state, "so it was") == done, "what was told before changes nothing"
    for other in TaskState:
        if other is not state:
            with pytest.raises(Conflict):
                ended(service, task, other)
    with pytest.raises(Conflict, match="has ended"):
        ended(service, task, state, "another reason")
    with pytest.raises(Conflict, match="nothing to stop"):
        service.client.stop_task(task.task_id)
    assert service.client.task(task.task_id) == done


def test_stop_ends_at_once_what_yarn_does_not_have_and_asks_for_the_rest(service: Served) -> None:
    client = service.client
    fresh, known = client.submit_task(SPEC), client.submit_task(SPEC)
    assert client.put_task_news(known.task_id, TaskNews(QUEUED)).taken, "YARN may have it from here on"

    assert client.stop_task(fresh.task_id).state is TaskState.STOPPED
    asked = client.stop_task(known.task_id)
    assert (asked.state, asked.stop_asked) == (QUEUED, True)
    assert client.stop_task(known.task_id) == asked
    with pytest.raises(Conflict, match="end what still runs of it"):
        client.put_task_news(fresh.task_id, NEWS)  # the submitter was under way with it
    assert ended(service, known, TaskState.STOPPED).stop_asked


def test_news_of_an_earlier_attempt_come_too_late(service: Served) -> None:
    task = service.client.submit_task(SPEC)
    service.client.put_task_news(task.task_id, TaskNews(RUNNING, attempt=2))
    with pytest.raises(Conflict, match="news of attempt 1"):
        service.client.put_task_news(task.task_id, TaskNews(TaskState.FAILED, attempt=1))


def test_again_makes_a_new_task_that_does_the_same(service: Served) -> None:
    with as_user(service, "maria") as maria:
        first = maria.submit_task(SPEC)
        second = service.client.task_again(first.task_id)
        assert (second.owner, second.spec, second.again_of) == ("maria", SPEC, first.task_id)
        assert maria.task(second.task_id) == second


def test_only_what_has_ended_can_be_removed(service: Served) -> None:
    task = service.client.submit_task(SPEC)
    with pytest.raises(Conflict, match="nodewise task stop"):
        service.client.remove_task(task.task_id)
    service.client.stop_task(task.task_id)
    service.client.remove_task(task.task_id)
    with pytest.raises(NotFound, match="nodewise task list"):
        service.client.task(task.task_id)


def test_of_a_forgotten_task_that_a_submitter_has_had_the_files_are_to_go(service: Served) -> None:
    client = service.client
    untaken, taken = client.submit_task(SPEC), client.submit_task(SPEC, "k")
    client.stop_task(untaken.task_id)
    ended(service, taken)
    for task in (untaken, taken):
        client.remove_task(task.task_id)
    assert client.gone_tasks() == (taken.task_id,)
    client.confirm_gone(taken.task_id)
    client.confirm_gone(taken.task_id)  # the answer to the first may have been lost
    assert client.gone_tasks() == ()


def test_the_files_of_a_forgotten_task_stay_while_another_of_its_id_has_them(service: Served) -> None:
    client = service.client
    ended(service, client.submit_task(SPEC, "k"))
    client.remove_task(service.client.tasks()[0].task_id)

    same = client.submit_task(SPEC, "k")
    assert client.gone_tasks() == (same.task_id,), "it has none yet"
    client.put_task_news(same.task_id, TaskNews(QUEUED))
    assert client.gone_tasks() == ()
    ended(service, same)
    client.remove_task(same.task_id)
    assert client.gone_tasks() == (same.task_id,)


def test_tasks_that_nobody_sweeps_up_are_forgotten_from_some_number_on(
    service: Served, monkeypatch: pytest.MonkeyPatch, hands: Hands
) -> None:
    monkeypatch.setattr(retention, "MOST_GONE", 2)
    gone = []
    for _ in range(3):
        hands.turn(1)
        gone.append(ended(service, service.client.submit_task(SPEC)).task_id)
        service.client.remove_task(gone[-1])

    assert set(service.client.gone_tasks()) == set(gone[1:])


def test_the_list_is_newest_first_chosen_and_paged(service: Served, hands: Hands) -> None:
    made = []
    for number in range(5):
        hands.turn(1)
        program = "resnet" if number % 2 else None
        made.append(service.client.submit_task(TaskSpec(["x"], name=f"Job{number}", program=program)))
    service.client.stop_task(made[0].task_id)

    def names(query: str) -> list[str]:
        return [task["name"] for task in service.ask("GET", f"/api/v1/tasks{query}").json["tasks"]]

    assert names("") == ["Job4", "Job3", "Job2", "Job1", "Job0"]
    assert names("?state=stopped") == ["Job0"] and len(names("?state=stopped&state=queued")) == 5
    assert names("?q=job3") == ["Job3"] and names("?q=RESNET") == ["Job3", "Job1"]
    assert names(f"?q={made[2].task_id[5:]}") == ["Job2"]
    assert names("?owner=admin&limit=1") == ["Job4"] and names("?owner=maria") == []
    first = service.ask("GET", "/api/v1/tasks?limit=2&state=queued")
    path = first.headers["link"].partition(">")[0].removeprefix("<")
    service.client.stop_task(made[3].task_id)
    service.client.remove_task(made[3].task_id)  # the place of a task in the list stays when it goes
    assert "state=queued" in path and names(path) == ["Job2", "Job1"]
    assert [task.name for task in service.client.tasks(limit=3)] == ["Job4", "Job2", "Job1"]
    for wrong in ("state=nothing", "limit=0", "limit=1001", "after=x", f"q={'x' * 129}", "page=2"):
        assert service.ask("GET", f"/api/v1/tasks?{wrong}").status == 422, wrong


def test_old_tasks_go_and_of_the_rest_the_oldest(sqlite_url: str, serve: Serving, hands: Hands) -> None:
    with serve(sqlite_url, hands, task_days=10, most_tasks=3) as service:
        upkeep = components_of(service.server.app).tasks
        old = service.client.submit_task(SPEC)
        kept = service.client.submit_task(TaskSpec(["runs on"]))
        ended(service, old)
        hands.turn(9 * retention.DAY)
        upkeep.look()
        assert len(service.client.tasks()) == 2
        hands.turn(2 * retention.DAY)
        upkeep.look()
        assert service.client.tasks() == [kept]
        assert service.client.gone_tasks() == (old.task_id,)
        for number in range(6):
            hands.turn(1)
            ended(service, service.client.submit_task(TaskSpec([f"x{number}"])))
        upkeep.look()
        assert [task.name for task in service.client.tasks()] == ["x5", "x4", "x3", "runs on"]
    with serve(sqlite_url, hands) as service:
        assert [task.name for task in service.client.tasks()] == ["x5", "x4", "x3", "runs on"]


def test_nobody_fills_the_service_with_tasks(sqlite_url: str, serve: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "MOST_OF_USER", 3)
    monkeypatch.setattr(retention, "MOST_NOT_ENDED", 4)
    with serve(sqlite_url, bytes_of_tasks=400_000) as service, as_user(service, "maria") as maria:
        for number in range(3):
            service.client.submit_task(SPEC, f"k{number}")
        with pytest.raises(Conflict, match="admin has 3 tasks"):
            service.client.submit_task(SPEC)
        assert service.client.submit_task(SPEC, "k0").state is QUEUED, "one that is there needs no room"
        first = maria.submit_task(SPEC)
        with pytest.raises(Conflict, match="there are 4 tasks"):
            maria.submit_task(SPEC)
        maria.stop_task(first.task_id)
        with pytest.raises(Conflict, match="the tasks of maria"):
            maria.submit_task(TaskSpec(["x" * 30_000] * 4))
        for _ in range(6):  # what has ended makes room
            maria.stop_task(maria.submit_task(TaskSpec(["x" * 30_000] * 3)).task_id)
        assert 1 < len(maria.tasks()) < 6
        with pytest.raises(InvalidInput, match="put them into a file of its archive"):
            maria.submit_task(TaskSpec(["x" * 30_000] * 5))


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"argv": []}, "argv"),
        ({"argv": [""]}, "argv"),
        ({"argv": ["a\0b"]}, "argv"),
        ({"argv": "ls"}, "argv"),
        ({"argv": ["x"], "variables": {"A-B": "1"}}, "variables"),
        ({"argv": ["x"], "variables": {"A": 1}}, "variables"),
        ({"argv": ["x"], "nodes": ["n1", "n1"]}, "nodes"),
        ({"argv": ["x"], "nodes": ["-n"]}, "nodes"),
        ({"argv": ["x"], "after": ["x"]}, "after"),
        ({"argv": ["x"], "memory_mb": 1}, "memory_mb"),
        ({"argv": ["x"], "queue": "a b"}, "queue"),
        ({"argv": ["x"], "program": "ResNet"}, "program"),
        ({"argv": ["x"], "output": "relative"}, "output"),
        ({"argv": ["x"], "seconds_at_most": 0}, "seconds_at_most"),
        ({"argv": ["x"], "devices": ["/dev/nvidia0"]}, "devices"),
        ({"argv": ["x"], "devices": ["nvidia.com/gpu"]}, "devices"),
        ({"argv": ["x"], "files": "0f" * 32}, "files"),
        ({"argv": ["x"], "shell": True}, "shell"),
    ],
)
def test_what_is_wrong_about_a_task_is_named(
    sqlite_url: str, serve: Serving, wrong: dict[str, object], field: str
) -> None:
    with serve(sqlite_url) as service:
        answer = service.ask("POST", "/api/v1/tasks", wrong)
        assert (answer.status, answer.error["field"]) == (422, field)
        assert service.client.tasks() == []
