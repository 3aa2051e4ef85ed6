"""Models that tasks left, fetched from a service that reads a played HDFS."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotFound
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import TaskState
from jobs.commands.task_model import fetch_model
from jobs.errors import JobError
from tests.jobs.played import Hadoop
from tests.jobs.test_board_outputs import end


def leave(users_client: InfoClient, hadoop: Hadoop, *names: str) -> str:
    """A task that has left files, of which each holds its own name."""
    task_id = users_client.submit_task(TaskSpec(["train"], output="hdfs:///out/mnist")).task_id
    hadoop.stored |= {f"/out/mnist/{name}": name.encode() for name in names}
    end(users_client, task_id, TaskState.SUCCEEDED)
    return task_id


def test_the_only_model_of_a_task_comes_with_what_belongs_to_it(users_client: InfoClient, hadoop: Hadoop) -> None:
    others = ("log.txt", "photos.toml", "best/other.toml", "best/photographs.toml")
    task_id = leave(users_client, hadoop, "best/photos.onnx", "best/photos.toml", *others)

    with ExitStack() as until:
        found = Path(str(fetch_model(f"task:{task_id}", lambda: users_client, until.enter_context)))
        assert (found.name, found.read_text()) == ("photos.onnx", "best/photos.onnx")
        assert (found.parent / "photos.toml").read_text() == "best/photos.toml"
        assert len(list(found.parent.iterdir())) == 2

    assert not found.parent.exists()


def test_one_of_several_models_is_named_by_its_path(users_client: InfoClient, hadoop: Hadoop) -> None:
    task_id = leave(users_client, hadoop, "a-symbol.json", "a-0000.params", "a-0001.params", "b.onnx")

    with ExitStack() as until:
        found = Path(str(fetch_model(f"task:{task_id}/a-symbol.json", lambda: users_client, until.enter_context)))
        assert {file.name for file in found.parent.iterdir()} == {"a-symbol.json", "a-0000.params", "a-0001.params"}
        with pytest.raises(JobError, match=r"has left 2 models: a-symbol\.json, b\.onnx: name one as task:ID/PATH"):
            fetch_model(f"task:{task_id}", lambda: users_client, until.enter_context)
        with pytest.raises(NotFound):
            fetch_model(f"task:{task_id}/c.onnx", lambda: users_client, until.enter_context)


def test_a_task_without_a_model_is_refused_and_what_names_no_task_stays_as_it_is(
    users_client: InfoClient, hadoop: Hadoop
) -> None:
    task_id = leave(users_client, hadoop, "log.txt")

    with ExitStack() as until:
        with pytest.raises(JobError, match=r"has left no file \*\.onnx or \*-symbol\.json"):
            fetch_model(f"task:{task_id}", lambda: users_client, until.enter_context)
        assert fetch_model("photos.onnx", lambda: users_client, until.enter_context) == "photos.onnx"
        assert fetch_model(None, lambda: users_client, until.enter_context) is None
