"""The token of a task: what its runner and its program may do with it, and when it ends."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from infosvc.access import task_token
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Conflict, Forbidden, InvalidInput, NotFound, Unauthorized
from infosvc.wire.records import Kind, Producer, Role
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskNews, TaskProgress, TaskState
from tests.infosvc.conftest import TOKEN
from tests.infosvc.task_users import as_user

if TYPE_CHECKING:
    from tests.infosvc.conftest import Hands, Served

PLACE = "/disk/container/.output"
BEGUN = TaskProgress(1, running=False, reason="fetching data", output_folder=PLACE)


def asked_for(service: Served, user: InfoClient, **more: Any) -> tuple[Task, InfoClient]:
    """A new task of this user, and a client with its token, as a submitter got it."""
    task = user.submit_task(TaskSpec(["train"], **more))
    with as_user(service, f"submitter of {task.task_id}", Role.SUBMITTER) as submitter:
        return task, InfoClient(service.url, submitter.task_token(task.task_id))


def test_a_runner_tells_how_far_its_task_is_until_that_has_ended(service: Served, hands: Hands) -> None:
    with as_user(service, "maria") as maria:
        task, runner = asked_for(service, maria)
        starting = runner.put_task_progress(task.task_id, BEGUN)
        hands.turn(7)
        runner.put_task_progress(task.task_id, TaskProgress(1, running=True, idle_since=1.5, output_folder=PLACE))
        running = maria.task(task.task_id)
        service.client.put_task_news(task.task_id, TaskNews(TaskState.SUCCEEDED, exit_code=0))
        done = maria.task(task.task_id)

        assert (starting.state, starting.reason, starting.output_folder) == (TaskState.STARTING, "fetching data", PLACE)
        assert starting.started_at is None
        assert (running.state, running.reason, running.idle_since) == (TaskState.RUNNING, "", 1.5)
        assert running.started_at == starting.changed_at + 7
        assert (done.idle_since, done.output_folder) == (None, None), "nothing of it is on a node any more"
        with pytest.raises(Unauthorized, match=f"{task.task_id} has ended, and its token with it"):
            runner.nodes()
        with pytest.raises(Conflict, match="has ended"):
            service.client.task_token(task.task_id)


def test_a_start_that_was_overtaken_is_not_believed(service: Served) -> None:
    task, runner = asked_for(service, service.client)
    runner.put_task_progress(task.task_id, BEGUN)
    anew = service.client.put_task_news(task.task_id, TaskNews(TaskState.QUEUED, attempt=2))
    assert (anew.output_folder, anew.attempt) == (None, 2), "where the first start was is of no use"
    with pytest.raises(Conflict, match="attempt 2, and this is news of attempt 1"):
        runner.put_task_progress(task.task_id, BEGUN)


def test_no_word_of_a_program_keeps_its_task_from_its_end(service: Served) -> None:
    task, program = asked_for(service, service.client)
    program.put_task_progress(task.task_id, TaskProgress(1, running=True, idle_since=1e14))
    assert (service.client.task(task.task_id).idle_since or 0) < 1e10, "no later than now"
    with pytest.raises(Conflict, match="has not begun its attempt 99"):
        program.put_task_progress(task.task_id, TaskProgress(100, running=True))
    program.put_task_progress(task.task_id, TaskProgress(2, running=True))

    service.client.put_task_news(task.task_id, TaskNews(TaskState.RUNNING, application_id="application_1_0001"))
    end = TaskNews(TaskState.FAILED, "exit code 3", "application_1_0001", attempt=1)
    ended = service.client.put_task_news(task.task_id, end)
    assert (ended.state, ended.reason) == (TaskState.FAILED, "exit code 3")


def test_what_a_runner_has_told_is_not_undone_by_a_submitter_that_saw_less(service: Served) -> None:
    task, runner = asked_for(service, service.client)
    said = TaskNews(TaskState.STARTING, "", "application_1_0001", "n1", 1)
    runner.put_task_progress(task.task_id, BEGUN)
    begun = service.client.put_task_news(task.task_id, said)
    assert (begun.state, begun.reason, begun.node_name) == (TaskState.STARTING, "fetching data", "n1")

    runner.put_task_progress(task.task_id, TaskProgress(1, running=True, output_folder=PLACE))
    now = service.client.put_task_news(task.task_id, said)
    assert (now.state, now.node_name, now.output_folder) == (TaskState.RUNNING, "n1", PLACE)
    again = runner.put_task_progress(task.task_id, TaskProgress(2, running=False, reason="getting its files"))
    assert (again.state, again.node_name) == (TaskState.STARTING, None), "where the second start is nobody has said"
    assert service.client.put_task_news(task.task_id, replace(said, attempt=2)).node_name == "n1"


def test_a_task_s_token_may_track_runs_and_read_values_and_nothing_else(service: Served) -> None:
    with as_user(service, "maria") as maria:
        task, program = asked_for(service, maria)
        other, _ = asked_for(service, maria)
        service.client.put_producer(Producer("load", "", 60.0, Kind.PROGRAM))

        assert [one.data_name for one in program.producers()] == ["load"]
        with pytest.raises(Forbidden, match=f"the token of {task.task_id} may not tell of {other.task_id}"):
            program.put_task_progress(other.task_id, BEGUN)
        for call in (
            lambda: program.submit_task(TaskSpec(["more"])),
            lambda: program.task(task.task_id),
            lambda: program.stop_task(task.task_id),
            lambda: program.remove_task(other.task_id),
            lambda: program.task_token(task.task_id),
            lambda: program.put_task_news(task.task_id, TaskNews(TaskState.SUCCEEDED)),
            lambda: program.put_value("load", "n1", 1),
            lambda: program.create_token("mine", Role.USER),
        ):
            with pytest.raises(Forbidden, match="a token of role task may not do this"):
                call()
        with pytest.raises(Forbidden, match="role user may not"):
            maria.task_token(task.task_id)
        with pytest.raises(Forbidden, match="role user may not"):
            maria.put_task_progress(task.task_id, BEGUN)


def test_a_task_hears_of_no_task_not_even_its_owner_s(service: Served) -> None:
    task, program = asked_for(service, service.client)
    with pytest.raises(Forbidden, match="role task may not"), program.events(types=["task"]):
        pass
    with program.events() as events:
        program.put_task_progress(task.task_id, BEGUN)
        other = service.client.submit_task(TaskSpec(["other"], variables={"SECRET": "1"}))
        service.client.stop_task(other.task_id)
        service.client.put_node("n1", "127.0.0.1:9")
        assert next(iter(events)).type == "node"


def test_a_token_is_of_one_task_and_cannot_be_made_up(service: Served) -> None:
    task, runner = asked_for(service, service.client)
    text = task_token.text_of(task, TOKEN)
    assert InfoClient(service.url, text).nodes() == runner.nodes()
    for wrong in (text[:-1] + ("0" if text[-1] != "0" else "1"), task_token.text_of(task, "another secret")):
        with pytest.raises(Unauthorized, match="does not know"):
            InfoClient(service.url, wrong).nodes()
    with pytest.raises(InvalidInput, match="made by the service itself, for each task"):
        service.client.create_token("mine", Role.TASK)
    with pytest.raises(NotFound):
        service.client.task_token("task_0000000000000000")


def test_an_earlier_task_of_the_same_id_has_another_token(service: Served, hands: Hands) -> None:
    first = service.client.submit_task(TaskSpec(["train"]), "k")
    old = InfoClient(service.url, service.client.task_token(first.task_id))
    assert old.nodes() == []
    service.client.stop_task(first.task_id)
    service.client.remove_task(first.task_id)
    hands.turn(1)
    assert service.client.submit_task(TaskSpec(["train"]), "k").task_id == first.task_id

    with pytest.raises(Unauthorized, match="does not know"):
        old.nodes()


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"running": True}, "attempt"),
        ({"attempt": 0, "running": True}, "attempt"),
        ({"attempt": 1, "running": "yes"}, "running"),
        ({"attempt": 1, "running": True, "output_folder": "here"}, "output_folder"),
        ({"attempt": 1, "running": True, "idle_since": -1}, "idle_since"),
        ({"attempt": 1, "running": True, "state": "succeeded"}, "state"),
    ],
)
def test_progress_that_is_wrong_is_refused_by_field(service: Served, body: dict[str, Any], field: str) -> None:
    task = service.client.submit_task(TaskSpec(["train"]))
    answer = service.ask("PUT", f"/api/v1/tasks/{task.task_id}/progress", body)
    assert (answer.status, answer.error["field"]) == (422, field)


def test_what_a_runner_tells_leaves_no_line_in_the_audit_log_and_its_token_no_trace(service: Served) -> None:
    task, runner = asked_for(service, service.client)
    runner.put_task_progress(task.task_id, BEGUN)

    lines = service.client.audit()
    assert [one.call for one in lines if "progress" in one.call] == []
    (made,) = [one for one in lines if one.call.endswith("/token")]
    assert task_token.text_of(task, TOKEN) not in repr(lines) and made.status == 201
