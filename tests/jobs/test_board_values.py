"""What tasks have reported, as curves: read from an HDFS that is played, by the board and by the commands."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import pytest
from flask.testing import FlaskClient

from boxes.box import Use
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InvalidInput, NotFound
from infosvc.wire.records import Role
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import EXAMPLE_ID, TaskNews, TaskState, TaskValues
from jobs.dashboard.tasks import curves
from jobs.kinds.task.using import notes
from tests.jobs.conftest import TOKEN
from tests.jobs.played import Hadoop

Rows = Iterable[tuple[str, int, float]]


def store(hadoop: Hadoop, rows: Rows, start: int = 1, task_id: str = EXAMPLE_ID) -> None:
    """Note values as the runner of a start does, a second apart, and a line that is being written."""
    notes = [
        f'{{"at":{1000 * start + place}.000,"name":"{name}","step":{step},"value":{value}}}\n'
        for place, (name, step, value) in enumerate(rows)
    ]
    text = "".join(notes) + '{"at":9.0,"name":"half'
    hadoop.stored[f"/user/me/.nodewise/tasks/{task_id}/values.{start}"] = text.encode()


@pytest.fixture
def ask(known: FlaskClient) -> Callable[..., Any]:
    """What the call answers about the task."""

    def call(query: str = "") -> Any:
        return known.get(f"/api/v1/tasks/{EXAMPLE_ID}/values{query}").get_json()

    return call


def shapes(answer: Any) -> dict[str, list[tuple[int, float]]]:
    return {one["name"]: [(step, value) for step, _, value in one["points"]] for one in answer["curves"]}


def test_a_task_that_reported_nothing_has_no_curve(ask: Callable[..., Any]) -> None:
    answer = ask()

    assert answer == {"task_id": EXAMPLE_ID, "state": "running", "attempt": None, "whole": True, "curves": []}


def test_each_name_has_a_curve_by_step_and_what_was_reported_last_of_a_step_counts(
    ask: Callable[..., Any], hadoop: Hadoop
) -> None:
    store(hadoop, [("loss", 2, 0.5), ("loss", 1, 0.9), ("accuracy", 0, 0.1), ("loss", 2, 0.6)])

    accuracy, loss = ask()["curves"]

    assert (accuracy["name"], accuracy["count"], accuracy["points"]) == ("accuracy", 1, [[0, 1002.0, 0.1]])
    assert loss["points"] == [[1, 1001.0, 0.9], [2, 1003.0, 0.6]]
    assert (loss["last"], loss["least"], loss["most"], loss["count"]) == (0.6, 0.6, 0.9, 2)


def test_what_the_program_used_are_curves_of_their_own(ask: Callable[..., Any], hadoop: Hadoop) -> None:
    store(hadoop, [("loss", 0, 0.5)])
    first = notes(Use(0.0, 0, 0, 0, 0, 0, 0), Use(2.0, 100, 50, 0, 3, 40, 5), 5.0, 1000.0)
    second = notes(Use(2.0, 100, 50, 0, 3, 40, 5), Use(12.0, 200, 50, 1000, 4, 90, 5), 5.0, 1005.0)
    hadoop.stored[f"/user/me/.nodewise/tasks/{EXAMPLE_ID}/used.1"] = first + second

    found = shapes(ask("?of=used"))

    assert found["cpu_cores"] == [(200, 0.4), (201, 2.0)]
    assert found["memory_bytes"] == [(200, 100.0), (201, 200.0)]
    assert found["read_bytes_per_second"] == [(200, 10.0), (201, 0.0)]
    assert found["written_bytes_per_second"] == [(200, 0.0), (201, 200.0)]
    assert found["received_bytes_per_second"] == [(200, 8.0), (201, 10.0)]
    assert found["sent_bytes_per_second"] == [(200, 1.0), (201, 0.0)]
    assert found["processes"] == [(200, 3.0), (201, 4.0)]
    assert list(shapes(ask())) == ["loss"]
    assert ask("?of=wished")["error"]["message"].startswith("there are no values 'wished': ask for")


def test_the_network_has_no_curve_where_it_cannot_be_told(ask: Callable[..., Any], hadoop: Hadoop) -> None:
    looks = [
        Use(0.0, 0, 0, 0, 0, 0, 0),
        Use(1.0, 100, 0, 0, 1),
        Use(2.0, 100, 0, 0, 1),
        Use(3.0, 100, 0, 0, 1, 10**9, 5),
    ]
    noted = [notes(before, now, 5.0, 1000.0) for before, now in pairwise(looks)]
    hadoop.stored[f"/user/me/.nodewise/tasks/{EXAMPLE_ID}/used.1"] = b"".join(noted)

    assert sorted(shapes(ask("?of=used"))) == [
        "cpu_cores",
        "memory_bytes",
        "processes",
        "read_bytes_per_second",
        "written_bytes_per_second",
    ]


def test_starts_are_joined_and_a_later_one_counts_from_its_first_step_on(
    ask: Callable[..., Any], hadoop: Hadoop
) -> None:
    store(hadoop, [("loss", step, 1.0) for step in range(6)] + [("only", 0, 5.0)], 1)
    store(hadoop, [("loss", step, 2.0) for step in (3, 4)], 2)

    assert shapes(ask()) == {"loss": [(0, 1.0), (1, 1.0), (2, 1.0), (3, 2.0), (4, 2.0)], "only": [(0, 5.0)]}
    assert shapes(ask("?attempt=2")) == {"loss": [(3, 2.0), (4, 2.0)]}
    assert (ask("?attempt=1")["attempt"], len(shapes(ask("?attempt=1"))["loss"])) == (1, 6)
    assert ask("?attempt=3")["curves"] == []


def test_a_long_curve_is_thinned_evenly_and_keeps_its_ends(ask: Callable[..., Any], hadoop: Hadoop) -> None:
    store(hadoop, [("loss", step, abs(step - 4321)) for step in range(10_000)])

    (curve,) = ask()["curves"]
    assert (len(curve["points"]), curve["points"][0][0], curve["points"][-1][0]) == (500, 0, 9999)
    assert (curve["count"], curve["least"], curve["most"], curve["last"]) == (10_000, 0, 5678, 5678)
    assert [point[0] for point in ask("?points=3")["curves"][0]["points"]] == [0, 4999, 9999]
    assert len(ask("?points=2000")["curves"][0]["points"]) == 2000


@pytest.mark.parametrize("query", ["?points=1", "?points=2001", "?points=x", "?attempt=-1", "?attempt=1.5"])
def test_a_wrong_parameter_is_named(ask: Callable[..., Any], query: str) -> None:
    assert ask(query)["error"]["field"] == query.strip("?").partition("=")[0]


def test_what_is_read_in_pieces_is_whole(
    ask: Callable[..., Any], hadoop: Hadoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(hadoop, [("loss", step, step) for step in range(100)])
    for size in (60, 97, 500, 100_000):
        monkeypatch.setattr(curves, "PIECE_BYTES", size)
        assert len(shapes(ask())["loss"]) == 100, size


def test_of_very_much_the_last_start_is_read_and_that_is_said(
    ask: Callable[..., Any], hadoop: Hadoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(hadoop, [("loss", step, 1.0) for step in range(100)], 1)
    store(hadoop, [("loss", step, 2.0) for step in range(50, 60)], 2)
    monkeypatch.setattr(curves, "MOST_BYTES", 2000)
    monkeypatch.setattr(curves, "PIECE_BYTES", 500)

    answer = ask()

    assert (answer["whole"], shapes(answer)) == (False, {"loss": [(step, 2.0) for step in range(50, 60)]})


def test_of_too_many_names_that_a_program_wrote_there_itself_the_first_are_read(
    ask: Callable[..., Any], hadoop: Hadoop
) -> None:
    store(hadoop, [(f"v{number}", 0, 1.0) for number in range(300)])

    assert len(ask()["curves"]) == 100


def test_one_who_comes_while_too_many_read_is_asked_to_come_again(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.dashboard.calls.VALUES_AT_ONCE", 0)
    monkeypatch.setattr("jobs.dashboard.calls.VALUES_WAIT_SECONDS", 0.01)
    ask = request.getfixturevalue("ask")

    assert ask()["error"] == {
        "code": "not_ready",
        "message": "values of many tasks are read already: try again in a few seconds",
        "field": None,
    }


def test_joining_with_nothing_changes_nothing() -> None:
    rows = array("d", [1, 2, 3])

    assert curves.join(rows, array("d")) == rows


# The client and the commands, against a running users_client with the board.


def submit(users_client: InfoClient, hadoop: Hadoop, name: str, rows: Rows) -> str:
    """A task that has reported these values."""
    task_id = users_client.submit_task(TaskSpec(["train"], name=name)).task_id
    admin = InfoClient(users_client.url, TOKEN)
    admin.put_task_news(task_id, TaskNews(TaskState.RUNNING, attempt=1))
    store(hadoop, rows, task_id=task_id)
    return task_id


def test_the_client_reads_curves_of_its_users_tasks_alone(users_client: InfoClient, hadoop: Hadoop) -> None:
    task_id = submit(users_client, hadoop, "mine", [("loss", step, 1 / (step + 1)) for step in range(50)])

    found = users_client.task_values(task_id, attempt=1, points=10)

    assert (found.state, found.attempt, found.whole) == (TaskState.RUNNING, 1, True)
    (loss,) = found.curves
    assert (loss.name, loss.count, len(loss.points), loss.points[-1]) == ("loss", 50, 10, (49, 1049.0, 0.02))
    assert TaskValues.from_json(found.to_json()) == found
    with pytest.raises(InvalidInput, match="points is 1: it must be between 2 and 2000"):
        users_client.task_values(task_id, points=1)
    stranger = InfoClient(users_client.url, InfoClient(users_client.url, TOKEN).create_token("otto", Role.USER)[1])
    with pytest.raises(NotFound):
        stranger.task_values(task_id)


def test_values_are_shown_with_a_curve(
    task_command: Callable[..., str], users_client: InfoClient, hadoop: Hadoop
) -> None:
    task_id = submit(
        users_client, hadoop, "mnist", [("loss", step, 8 - step) for step in range(8)] + [("rate", 0, 1e-05)]
    )

    rows = [line.split() for line in task_command("values", task_id).splitlines()]

    assert rows == [
        ["value", "last", "least", "most", "count", "curve"],
        ["loss", "1", "1", "8", "8", "█▇▆▅▄▃▂▁"],
        ["rate", "1e-05", "1e-05", "1e-05", "1", "▁"],
    ]
    said = json.loads(task_command("values", task_id, "--attempt", "1", "--json"))
    assert TaskValues.from_json(said) == users_client.task_values(task_id, 1)
    assert task_command("values", submit(users_client, hadoop, "silent", [])).startswith("no value was reported")


def test_tasks_are_compared_by_their_last_values_and_by_a_curve(
    task_command: Callable[..., str], users_client: InfoClient, hadoop: Hadoop
) -> None:
    first = submit(users_client, hadoop, "slow", [("loss", step, 10 - step) for step in range(0, 9, 4)])
    second = submit(users_client, hadoop, "fast", [("loss", 0, 10), ("loss", 2, 1.5), ("accuracy", 2, 0.9)])

    rows = [line.split() for line in task_command("compare", first, second).splitlines()]
    assert rows[0] == ["task", "name", "state", "accuracy", "loss"]
    assert rows[1:] == [[first, "slow", "running", "2"], [second, "fast", "running", "0.9", "1.5"]]

    steps = [line.split() for line in task_command("compare", first, second, "--value", "loss").splitlines()]
    assert steps == [
        [first, second],
        ["step", "slow", "fast"],
        ["0", "10", "10"],
        ["2", "10", "1.5"],
        ["4", "6"],
        ["8", "2"],
    ]
    last, curves = (
        json.loads(task_command("compare", first, second, *more, "--json")) for more in ((), ("--value", "loss"))
    )
    assert [one["values"] for one in last] == [{"loss": 2}, {"loss": 1.5, "accuracy": 0.9}]
    assert [(one["task_id"], one["value"], len(one["points"])) for one in curves] == [
        (first, "loss", 3),
        (second, "loss", 2),
    ]
    assert task_command("compare", first, "--value", "nothing") == "none of these tasks has reported nothing\n"
