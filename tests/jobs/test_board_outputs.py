"""What tasks left in HDFS: listed and fetched from an HDFS that is played, by the board and by the commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InvalidInput, NotFound
from infosvc.wire.records import Role
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import TaskNews, TaskOutputs, TaskState
from jobs.commands.task import task_outputs as commands
from jobs.dashboard.tasks import outputs
from tests.jobs.conftest import TOKEN
from tests.jobs.played import Hadoop

FILES = {"log.txt": b"epoch 1\n", "model/weights.bin": bytes(range(256)) * 40, "model/empty": b""}


@pytest.fixture
def left(users_client: InfoClient, hadoop: Hadoop) -> str:
    """A task that has left FILES."""
    task_id = users_client.submit_task(TaskSpec(["train"], output="hdfs:///out/mnist/")).task_id
    hadoop.stored |= {f"/out/mnist/{name}": content for name, content in FILES.items()}
    end(users_client, task_id, TaskState.SUCCEEDED)
    return task_id


def end(users_client: InfoClient, task_id: str, state: TaskState) -> None:
    InfoClient(users_client.url, TOKEN).put_task_news(task_id, TaskNews(state, attempt=1))


def test_the_files_are_listed_by_path_with_their_sizes(users_client: InfoClient, left: str) -> None:
    found = users_client.task_outputs(left)

    assert (found.task_id, found.output, found.whole) == (left, "/out/mnist", True)
    assert {one.path: one.size_bytes for one in found.files} == {name: len(text) for name, text in FILES.items()}
    assert [one.path for one in found.files] == sorted(FILES)
    assert TaskOutputs.from_json(found.to_json()) == found


def test_a_file_comes_in_pieces_and_whole(
    users_client: InfoClient, left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "PIECE_BYTES", 1000)

    for name, content in FILES.items():
        size = users_client.get_output(left, name, tmp_path / "got")
        assert (size, (tmp_path / "got").read_bytes()) == (len(content), content)
    assert [path.name for path in tmp_path.iterdir() if "got" in path.name] == ["got"]


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../secret", "model/../../secret", "model//weights.bin", "."])
def test_a_path_that_leads_out_of_the_output_is_refused(users_client: InfoClient, left: str, name: str) -> None:
    with pytest.raises(InvalidInput, match="it must be that of a file below the output"):
        users_client.get_output(left, name, Path("never"))


def test_what_is_no_file_of_the_output_is_not_found(users_client: InfoClient, left: str, tmp_path: Path) -> None:
    for name in ("model", "nothing"):
        with pytest.raises(NotFound, match=f"the task left no file {name}"):
            users_client.get_output(left, name, tmp_path / "never")
    assert not (tmp_path / "never").exists()


@pytest.mark.parametrize("state", [TaskState.RUNNING, TaskState.FAILED])
def test_a_task_shows_only_what_it_has_put_in_place_itself(
    users_client: InfoClient, hadoop: Hadoop, state: TaskState
) -> None:
    hadoop.stored["/secret/file"] = b"of somebody else"
    task_id = users_client.submit_task(TaskSpec(["train"], output="/secret")).task_id
    end(users_client, task_id, state)

    with pytest.raises(NotFound, match=f"has no output, for it is {state}"):
        users_client.task_outputs(task_id)
    with pytest.raises(NotFound, match=f"has no output, for it is {state}"):
        users_client.get_output(task_id, "file", Path("never"))


def test_a_task_without_an_output_says_so(users_client: InfoClient) -> None:
    task_id = users_client.submit_task(TaskSpec(["train"])).task_id

    with pytest.raises(NotFound, match="names no output: name one by --output"):
        users_client.task_outputs(task_id)


def test_another_user_sees_nothing(users_client: InfoClient, left: str) -> None:
    stranger = InfoClient(users_client.url, InfoClient(users_client.url, TOKEN).create_token("otto", Role.USER)[1])

    with pytest.raises(NotFound):
        stranger.task_outputs(left)
    with pytest.raises(NotFound):
        stranger.get_output(left, "log.txt", Path("never"))


def test_of_very_many_files_some_are_left_out_and_said_to_be(
    users_client: InfoClient, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "MOST_FILES", 2)
    assert (len(users_client.task_outputs(left).files), users_client.task_outputs(left).whole) == (2, False)
    monkeypatch.setattr(outputs, "MOST_FILES", 10)
    monkeypatch.setattr(outputs, "MOST_FOLDERS", 1)
    assert not users_client.task_outputs(left).whole


def test_the_commands_list_and_fetch(task_command: Callable[..., str], left: str, tmp_path: Path) -> None:
    rows = [line.split()[:2] for line in task_command("outputs", "ls", left).splitlines()]
    assert rows == [["file", "bytes"], ["log.txt", "8"], ["model/empty", "0"], ["model/weights.bin", "10240"]]
    assert [one["path"] for one in json.loads(task_command("outputs", "ls", left, "--json"))["files"]] == sorted(FILES)

    came = json.loads(task_command("outputs", "get", left, "--to", str(tmp_path / "all"), "--json"))

    assert {one["path"]: one["size_bytes"] for one in came} == {name: len(text) for name, text in FILES.items()}
    for name, content in FILES.items():
        assert (tmp_path / "all" / name).read_bytes() == content


def test_a_file_that_is_there_is_kept_unless_it_is_to_be_replaced(
    task_command: Callable[..., str], left: str, tmp_path: Path
) -> None:
    (tmp_path / "log.txt").write_text("mine")

    with pytest.raises(AssertionError, match=r"log.txt exists: choose another folder by --to, or use --overwrite"):
        task_command("outputs", "get", left, "log.txt", "--to", str(tmp_path))
    assert (tmp_path / "log.txt").read_text() == "mine"

    said = task_command("outputs", "get", left, "log.txt", "--to", str(tmp_path), "--overwrite")
    assert said == f"{tmp_path}/log.txt: 8 bytes\n"
    assert (tmp_path / "log.txt").read_bytes() == FILES["log.txt"]


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../up", ""])
def test_a_name_that_a_service_made_up_leads_nowhere_else(name: str) -> None:
    with pytest.raises(Exception, match="is not the path of a file below the task's output"):
        commands.checked(name)
