"""Single pictures that callers of the service have a pool look at; its master and Hadoop are played over real HTTP."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from infosvc.http.openapi.document import add_described
from infosvc.wire.errors import NotReady
from jobs.dashboard import inference
from jobs.dashboard.document import BOARD
from jobs.dashboard.inference import MOST_AT_ONCE, MOST_OF_ONE, Inference, make_answer
from jobs.kinds.pool import client as pool_client
from jobs.kinds.pool.wishes import Picture, Refusal
from tests.jobs.one_user import ask_once_too_often
from tests.jobs.played import Hadoop
from tests.jobs.test_board_document import check
from tests.jobs.test_pool_client import FOLDER, Place

NONE: Any = None
INFER = "/api/v1/pools/photos/infer"
ROW: dict[str, Any] = {
    "path": "cat.jpg",
    "class_id": 3,
    "class_name": "cat",
    "score": 0.75,
    "top5": [{"class_id": 3, "class_name": "cat", "score": 0.75}, {"class_id": 1, "class_name": "dog", "score": 0.25}],
    "node_name": "alpha",
    "engine": "onnx.alexnet",
    "error": None,
    "milliseconds": 31.5,
    "work_milliseconds": 24.0,
    "together": 2,
}


@pytest.fixture
def pool(known: FlaskClient, hadoop: Hadoop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """The cluster that the board knows has a pool called photos."""
    monkeypatch.setattr(pool_client, "PAUSE_SECONDS", 0.01)
    made = Place(hadoop, tmp_path, monkeypatch)
    yield made
    made.close()


def test_a_picture_is_answered_as_the_document_says(known: FlaskClient, pool: Place) -> None:
    pool.master.answers.append({"row": ROW})
    document: dict[str, Any] = {"tags": [], "paths": {}, "definitions": {}}
    add_described(document, [deepcopy(BOARD)])

    answer = known.post(f"{INFER}?name=cat.jpg&seconds=5", data=b"bytes", content_type="application/octet-stream")

    assert answer.status_code == 200
    said = answer.get_json()
    check(document, "/pools/{pool}/infer", "post", 200, said)
    assert said == {
        "path": "cat.jpg",
        "error": None,
        "classes": ROW["top5"],
        "outputs": {},
        "node_name": "alpha",
        "engine": "onnx.alexnet",
        "together": 2,
        "milliseconds": 31.5,
        "work_milliseconds": 24.0,
    }
    assert pool.master.pictures == [Picture("cat.jpg", "", 5.0)]
    assert pool.master.heard == [("/pool/infer", b"bytes")]


def test_a_picture_in_hdfs_is_named_by_its_path_and_one_that_has_an_error_is_answered(
    known: FlaskClient, pool: Place
) -> None:
    pool.master.answers.append(
        {"row": {"path": "/a.jpg", "error": "SIGSEGV", "node_name": "alpha", "milliseconds": 1.0}}
    )

    answer = known.post(f"{INFER}?path=/a.jpg")

    assert answer.status_code == 200
    assert (answer.get_json()["error"], answer.get_json()["classes"]) == ("SIGSEGV", [])
    assert pool.master.pictures == [Picture("/a.jpg", "/a.jpg", 30.0)]


def test_numbers_of_other_networks_are_answered_and_what_json_has_no_number_for_is_null() -> None:
    row = {name: value for name, value in ROW.items() if name not in ("top5", "class_id", "class_name", "score")}

    answer = make_answer(row | {"features": [1.5, math.inf, math.nan], "boxes": []})

    assert answer.outputs == {"features": (1.5, None, None), "boxes": ()}
    assert answer.classes == ()
    broken = make_answer(ROW | {"top5": [{"class_id": 0, "class_name": "cat", "score": math.nan}]})
    assert [one.score for one in broken.classes] == [None]


@pytest.mark.parametrize(
    ("call", "body", "field"),
    [
        (INFER, b"", "path"),
        (f"{INFER}?path=/a.jpg", b"x", "path"),
        (f"{INFER}?seconds=0", b"x", "seconds"),
        (f"{INFER}?seconds=31", b"x", "seconds"),
        (f"{INFER}?seconds=soon", b"x", "seconds"),
    ],
)
def test_a_call_without_a_picture_or_time_is_refused(
    known: FlaskClient, pool: Place, call: str, body: bytes, field: str
) -> None:
    answer = known.post(call, data=body)

    assert (answer.status_code, answer.get_json()["error"]["field"]) == (422, field)
    assert pool.master.heard == []


def test_a_pool_that_does_not_exist_is_not_found(known: FlaskClient, pool: Place) -> None:
    answer = known.post("/api/v1/pools/other/infer", data=b"x")

    assert answer.status_code == 404
    assert "there is no pool other: me has photos" in answer.get_json()["error"]["message"]


@pytest.mark.parametrize(("passes", "status"), [(True, 503), (False, 404)])
def test_a_refusal_of_the_pool_tells_whether_to_ask_again(
    known: FlaskClient, pool: Place, passes: bool, status: int
) -> None:
    pool.master.answers.append(Refusal("the pool photos says no", "do something", passes).to_json())

    answer = known.post(INFER, data=b"x")

    assert answer.status_code == status
    assert answer.get_json()["error"]["message"] == "the pool photos says no: do something"
    assert (answer.headers.get("Retry-After") == "1") == passes


def test_a_pool_that_is_known_is_asked_at_once_until_it_has_ended(
    known: FlaskClient, hadoop: Hadoop, pool: Place
) -> None:
    pool.master.answers += [{"row": ROW}, {"row": ROW}]
    assert known.post(INFER, data=b"x").status_code == 200
    del hadoop.stored[f"{FOLDER}/job.json"], hadoop.stored[f"{FOLDER}/master.json"]
    assert known.post(INFER, data=b"x").status_code == 200

    pool.close()
    hadoop.app |= {"state": "KILLED"}
    answer = known.post(INFER, data=b"x")

    assert answer.status_code == 404
    assert "there is no pool photos: me has none" in answer.get_json()["error"]["message"]


def test_a_master_that_is_away_is_not_waited_for_long(
    known: FlaskClient, pool: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference, "AWAY_SECONDS", 0.0)
    pool.listeners[0].close()

    answer = known.post(INFER, data=b"x")

    assert answer.status_code == 503
    assert "the master of the pool" in answer.get_json()["error"]["message"]


def test_no_more_pictures_wait_than_leave_room_for_other_calls() -> None:
    full = Inference()
    with ExitStack() as places:
        for number in range(MOST_AT_ONCE):
            places.enter_context(full._places.take(f"user{number}"))

        with pytest.raises(NotReady, match="16 pictures are looked at already"):
            full.infer("maria", "key", NONE, Picture(), b"x")


def test_one_user_takes_half_of_the_places_and_others_find_the_rest(
    known: FlaskClient, pool: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def post() -> TestResponse:
        return known.application.test_client().post(INFER, data=b"x")

    refused, others = ask_once_too_often(post, pool, {"row": ROW}, MOST_OF_ONE, monkeypatch)

    assert others == [200] * (MOST_OF_ONE + 1)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    assert refused.get_json()["error"]["message"] == (
        "8 pictures of maria are looked at already, and one user gets no more at once: "
        "try again when one has its answer"
    )
