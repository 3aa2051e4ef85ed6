"""Who would miss an environment that is removed, as the service tells: one's own tasks, and how many of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from environments.store import FOLDER, Store
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InvalidInput
from infosvc.wire.records import Role
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import TaskNews, TaskState
from jobs.application.environments.users import Waiting, find_waiting_tasks
from jobs.application.submit import Submitter
from jobs.commands.made_environments import remove
from jobs.errors import JobError
from tests.jobs.kept_environments import keep_environment
from tests.jobs.kept_images import played_hdfs

AWAY = InfoClient("http://127.0.0.1:1", retries=0)


@pytest.fixture
def as_user(client: InfoClient) -> Iterator[Callable[[str], InfoClient]]:
    """as_user(NAME): a user's client of the service."""
    made: list[InfoClient] = []

    def enter(name: str) -> InfoClient:
        made.append(InfoClient(client.url, client.create_token(name, Role.USER)[1]))
        return made[-1]

    yield enter
    for one in made:
        one.close()


def test_tasks_of_others_are_counted_and_own_ones_named(
    client: InfoClient, as_user: Callable[[str], InfoClient]
) -> None:
    maria, otto = as_user("maria"), as_user("otto")
    own = maria.submit_task(TaskSpec(["a"], env="torch@1.13")).task_id
    running = maria.submit_task(TaskSpec(["a"], env="torch@1.13")).task_id
    client.put_task_news(running, TaskNews(TaskState.QUEUED, application_id="application_1_1"))
    theirs = [otto.submit_task(TaskSpec(["a"], env=env)).task_id for env in ("torch@1.13", "torch", "torch@2")]

    assert find_waiting_tasks(maria, "torch", "1.13", is_newest=False) == Waiting([own], 1)
    assert find_waiting_tasks(maria, "torch", "1.13", is_newest=True) == Waiting([own], 2)
    found = find_waiting_tasks(client, "torch", "1.13", is_newest=True)  # an admin sees all
    assert (set(found.task_ids), found.others) == ({own, *theirs[:2]}, 0)
    assert find_waiting_tasks(maria, "other", "1", is_newest=True).name_all() == []
    assert find_waiting_tasks(maria, "torch", "2", is_newest=False).name_all() == [
        "1 task of another user, which waits"
    ]


@pytest.fixture
def submitter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Submitter:
    """One whose HDFS has words@1, and whose YARN runs nothing."""
    hdfs = played_hdfs(tmp_path / "hdfs", monkeypatch)
    (tmp_path / "tree").mkdir()
    keep_environment(hdfs, tmp_path, {"/opt/env": tmp_path / "tree"})
    return cast("Submitter", SimpleNamespace(filesystem=hdfs, yarn=SimpleNamespace(tagged=lambda tag: [])))


def test_what_a_task_of_another_user_waits_for_is_not_removed(
    client: InfoClient, as_user: Callable[[str], InfoClient], submitter: Submitter
) -> None:
    maria, otto = as_user("maria"), as_user("otto")
    theirs = otto.submit_task(TaskSpec(["a"], env="words")).task_id

    with pytest.raises(JobError, match=r"^words@1 is used by 1 task of another user, which waits: end them"):
        remove(submitter, maria, "words@1", FOLDER)

    otto.stop_task(theirs)
    assert remove(submitter, maria, "words@1", FOLDER) == ("words@1", True)


def test_where_nobody_tells_of_tasks_it_is_removed_by_force_alone(submitter: Submitter) -> None:
    said = r"^it is not known whether tasks wait to start in words@1 \(.*127\.0\.0\.1:1.*\): name a service .* --force$"
    with pytest.raises(JobError, match=said):
        remove(submitter, AWAY, "words@1", FOLDER)
    assert [one.version for one in Store(submitter.filesystem).list_all()] == ["1"]

    assert remove(submitter, AWAY, "words@1", FOLDER, is_forced=True) == ("words@1", False)
    assert Store(submitter.filesystem).list_all() == []


def test_what_is_used_is_not_removed_by_force(
    as_user: Callable[[str], InfoClient], client: InfoClient, submitter: Submitter
) -> None:
    maria = as_user("maria")
    own = maria.submit_task(TaskSpec(["a"], env="words")).task_id

    with pytest.raises(JobError, match=f"^words@1 is used by {own}: "):
        remove(submitter, maria, "words@1", FOLDER, is_forced=True)


def test_what_an_older_service_does_not_tell_is_not_known(
    client: InfoClient, as_user: Callable[[str], InfoClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: InfoClient, environments: Any) -> int:
        raise InvalidInput("this call knows no parameter 'env'", "env")

    maria = as_user("maria")
    own = maria.submit_task(TaskSpec(["a"], env="torch@1.13")).task_id
    monkeypatch.setattr(InfoClient, "count_starting_in", refuse)

    found = find_waiting_tasks(maria, "torch", "1.13", is_newest=False)
    assert found == Waiting([own], None, "this call knows no parameter 'env'")


def test_without_a_service_nothing_is_known() -> None:
    found = find_waiting_tasks(AWAY, "torch", "1.13", is_newest=True)

    assert (found.task_ids, found.others) == ((), None) and "127.0.0.1:1" in found.silence
