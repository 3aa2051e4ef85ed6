"""Whose tasks are whose: no user, and nobody without a role for it, learns of the tasks of another."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Forbidden, InfoError, InvalidInput, NotFound, Unauthorized
from infosvc.wire.records import Role
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskNews, TaskState
from tests.infosvc.task_users import as_user

if TYPE_CHECKING:
    from tests.infosvc.conftest import Served

SECRET = "hidden-from-others"
SPEC = TaskSpec(["login", f"--password={SECRET}"], name="a job", variables={"KEY": SECRET})


@pytest.fixture
def maria(service: Served) -> Iterator[InfoClient]:
    """A user."""
    with as_user(service, "maria") as client:
        yield client


@pytest.fixture
def otto(service: Served) -> Iterator[InfoClient]:
    """Another user."""
    with as_user(service, "otto") as client:
        yield client


def test_users_see_and_stop_only_their_own(service: Served, maria: InfoClient, otto: InfoClient) -> None:
    task = maria.submit_task(SPEC)
    assert (task.owner, maria.tasks(), otto.tasks()) == ("maria", [task], [])
    assert otto.tasks(owner="maria") == []
    for forbidden in (otto.task, otto.stop_task, otto.task_again, otto.remove_task):
        with pytest.raises(NotFound) as refused:
            forbidden(task.task_id)
        with pytest.raises(NotFound) as unknown:
            forbidden("task_0123456789abcdef")
        assert str(refused.value) == str(unknown.value).replace("task_0123456789abcdef", task.task_id)
    assert maria.task(task.task_id) == task
    with as_user(service, "maria") as same:  # two tokens of one name are one user
        assert same.tasks() == [task]
        assert same.submit_task(SPEC, "k") == maria.submit_task(SPEC, "k")
    assert otto.submit_task(SPEC, "k").task_id != maria.submit_task(SPEC, "k").task_id


def test_users_learn_how_many_tasks_of_others_shall_start_in_an_environment_and_no_more(
    service: Served, maria: InfoClient, otto: InfoClient
) -> None:
    asked = ("torch@1.13", "torch", "torch@1.13", "torch@2", "/home/otto/env.tar.gz", None)
    tasks = [otto.submit_task(TaskSpec(["a"], env=one)) for one in asked]
    service.client.put_task_news(tasks[2].task_id, TaskNews(TaskState.QUEUED, application_id="application_1_1"))

    assert maria.count_starting_in(["torch@1.13"]) == 1
    assert maria.count_starting_in(["torch@1.13", "torch"]) == 2
    otto.stop_task(tasks[0].task_id)
    assert maria.count_starting_in(["torch@1.13", "torch"]) == 1
    assert maria.count_starting_in([]) == maria.count_starting_in(["other@1"]) == 0
    for path in ("/home/otto/env.tar.gz", "torch@1.13\n", ""):
        with pytest.raises(InvalidInput) as refused:
            maria.count_starting_in([path])
        assert refused.value.field == "env"
    with pytest.raises(Unauthorized):
        service.reader.count_starting_in(["torch"])


def test_admins_see_and_stop_all_and_submitters_see_all(service: Served, maria: InfoClient, otto: InfoClient) -> None:
    tasks = {maria.submit_task(SPEC).task_id, otto.submit_task(SPEC).task_id}
    with as_user(service, "a submitter", Role.SUBMITTER) as submitter:
        for client in (submitter, service.client):
            assert {task.task_id for task in client.tasks()} == tasks
        first, second = tasks
        assert submitter.put_task_news(first, TaskNews(TaskState.RUNNING)).state is TaskState.RUNNING
        for forbidden in (submitter.stop_task, submitter.task_again, submitter.remove_task):
            with pytest.raises(Forbidden):
                forbidden(first)
        with pytest.raises(Forbidden):
            submitter.submit_task(SPEC)
        assert submitter.producers() == []
        assert submitter.gone_tasks() == ()
        submitter.confirm_gone(first)
        with pytest.raises(Forbidden):
            submitter.put_node("n1", "127.0.0.1:9")
    assert service.client.stop_task(second).state is TaskState.STOPPED
    with pytest.raises(Forbidden):
        maria.gone_tasks()
    with pytest.raises(Forbidden):
        maria.confirm_gone(first)
    with pytest.raises(Forbidden):
        maria.put_task_news(first, TaskNews(TaskState.FAILED))


@pytest.mark.parametrize("role", [Role.READER, Role.PROCESSOR, Role.SCHEDULER, Role.AGENT])
def test_other_roles_learn_nothing_of_tasks(service: Served, maria: InfoClient, role: Role) -> None:
    task = maria.submit_task(SPEC)
    _, text = service.client.create_token("other", role, "n1" if role is Role.AGENT else None)
    with InfoClient(service.url, text) as other:
        for refused in (other.tasks, lambda: other.task(task.task_id), lambda: other.events(["task"])):
            with pytest.raises(Forbidden):
                refused()
    for refused in (service.reader.tasks, lambda: service.reader.events(["task"])):
        with pytest.raises(Unauthorized):
            refused()


def test_a_user_has_a_name_that_can_be_one(service: Served) -> None:
    for name in ("Maria", "1x", "a b", "x" * 33, "ä"):
        with pytest.raises(InvalidInput, match="cannot be the name of a user") as refused:
            service.client.create_token(name, Role.USER)
        assert refused.value.field == "name"
    with as_user(service, "An Admin", Role.ADMIN) as admin, pytest.raises(Forbidden, match="'An Admin'"):
        admin.submit_task(SPEC)


def test_the_audit_log_shows_nothing_of_what_runs(
    service: Served, maria: InfoClient, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    task = maria.submit_task(SPEC)
    maria.task_again(task.task_id)
    wrong = [
        SPEC.to_json() | {"variables": {"A-B": SECRET}},
        SPEC.to_json() | {"argv": [SECRET, 1]},
        SPEC.to_json() | {"argv": SECRET},
        SPEC.to_json() | {"nodes": [f"-{SECRET}"]},
        SPEC.to_json() | {"variables": {"A": f"{SECRET}\0"}},
    ]
    for body in wrong:
        assert service.ask("POST", "/api/v1/tasks", body).status == 422
    service.client.put_task_news(task.task_id, TaskNews(TaskState.FAILED, reason=f"login {SECRET} failed"))
    eventually(lambda: [entry.status for entry in service.client.audit()].count(422) == len(wrong))
    entries = service.client.audit()
    (line,) = [entry for entry in entries if entry.call == "POST /api/v1/tasks" and entry.status == 201]
    said = json.loads(line.detail)

    assert SECRET not in str(entries)
    assert (said["task_id"], said["name"], len(said["sha256"])) == (task.task_id, "a job", 64)
    assert said["bytes"] == len(json.dumps(SPEC.to_json()))


def test_events_tell_each_user_of_their_own_tasks(service: Served, maria: InfoClient, otto: InfoClient) -> None:
    with maria.events(["task"]) as hers, otto.events() as his, service.client.events(["task"]) as all_of_them:
        foreign = otto.submit_task(TaskSpec(["x"]))
        task = maria.submit_task(SPEC)
        service.client.put_task_news(task.task_id, TaskNews(TaskState.RUNNING, node_name="n1"))
        ended = service.client.put_task_news(task.task_id, TaskNews(TaskState.FAILED, reason="broken", exit_code=1))
        maria.remove_task(task.task_id)
        otto.stop_task(foreign.task_id)
        seen = [next(hers) for _ in range(4)]
        of_otto = [next(his) for _ in range(2)]
        of_all = [next(all_of_them).data["task_id"] for _ in range(6)]

    assert [(one.type, one.data["state"], one.data["change"]) for one in seen] == [
        ("task", "queued", "put"),
        ("task", "running", "put"),
        ("task", "failed", "put"),
        ("task", "failed", "deleted"),
    ]
    assert seen[2].data["reason"] == ended.reason and seen[2].data["exit_code"] == 1
    assert {one.data["task_id"] for one in of_otto} == {foreign.task_id}
    assert set(of_all) == {task.task_id, foreign.task_id}
    assert SECRET not in str([one.data for one in (*seen, *of_otto)])


def test_a_token_that_was_revoked_is_nobody(service: Served, maria: InfoClient) -> None:
    maria.submit_task(SPEC)
    for token in service.client.tokens():
        service.client.revoke_token(token.token_id)
    with pytest.raises(InfoError):
        maria.tasks()
    assert [type(task) for task in service.client.tasks()] == [Task]
