"""Pools as the service shows them, and jobs given to them; masters and Hadoop are played over real HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from hadoop.client.yarn import Application
from infosvc.wire.bodies import PoolJobBody
from infosvc.wire.errors import NotReady
from jobs.application.following import Sight
from jobs.application.status import JobStatus
from jobs.commands.pool.pool_list import _to_json
from jobs.dashboard.pools import MOST_AT_ONCE, MOST_OF_ONE, Giving, _ends_in
from jobs.dashboard.showing import Watches
from jobs.dashboard.sources.yarn import Known
from jobs.kinds.pool import client as pool_client
from jobs.kinds.pool.wishes import IDLE_FOR, READY, JobWish, Refusal
from tests.infosvc.schemas import against
from tests.jobs import played
from tests.jobs.one_user import ask_once_too_often
from tests.jobs.played import JOB, Hadoop
from tests.jobs.test_board_document import check
from tests.jobs.test_pool_client import FOLDER, Place

NONE: Any = None
PHOTOS = "/api/v1/pools/photos"
LINE = {
    "job_id": "pool_1700000000000_0001_1",
    "state": "running",
    "said": "",
    "output": "/out/a",
    "weight": 2.0,
    "done": 3,
    "of": 40,
    "errors": 1,
}
BODY: dict[str, Any] = {"input": "/in", "output": "/out", "capability": "weight"}


@pytest.fixture
def pool(known: FlaskClient, hadoop: Hadoop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """The cluster that the board knows has a pool called photos."""
    monkeypatch.setattr(pool_client, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr("jobs.dashboard.pools.SHOW_SECONDS", 60.0)  # 5 s may be too little for a busy machine
    made = Place(hadoop, tmp_path, monkeypatch)
    yield made
    made.close()


def test_pools_are_listed_as_the_command_lists_them(known: FlaskClient, pool: Place, document: dict[str, Any]) -> None:
    answer = known.get("/api/v1/pools")

    assert answer.status_code == 200
    check(document, "/pools", "get", 200, answer.get_json())
    (found,) = pool.pools.list()
    assert answer.get_json() == {"pools": [_to_json(found) | {"own": True}]}
    assert pool.master.heard == [], "of a list no master is asked"


def test_the_pool_of_another_user_is_listed_as_one_that_the_caller_cannot_use(
    known: FlaskClient, hadoop: Hadoop, pool: Place
) -> None:
    hadoop.app["user"] = "you"

    (listed,) = known.get("/api/v1/pools").get_json()["pools"]

    assert (listed["user"], listed["own"]) == ("you", False)
    assert known.get(PHOTOS).status_code == 404


def test_a_pool_that_has_ended_is_not_listed(known: FlaskClient, hadoop: Hadoop, pool: Place) -> None:
    hadoop.app["state"] = "FINISHED"

    assert known.get("/api/v1/pools").get_json() == {"pools": []}


def test_a_pool_is_shown_with_its_workers_and_jobs(
    known: FlaskClient, pool: Place, document: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes: Any = played.STATUS["nodes"]
    (node,) = nodes
    ready = [node | {"node_name": name, "said": READY, "running": 0} for name in ("beta", "gamma")]
    monkeypatch.setitem(played.STATUS, "nodes", [node, *ready])
    pool.master.answers.append({"jobs": [LINE | {"of_a_later_version": 1}]})

    answer = known.get(PHOTOS)

    assert answer.status_code == 200
    said = answer.get_json()
    check(document, "/pools/{pool}", "get", 200, said)
    assert (said["name"], said["job_id"], said["engine"], said["model"]) == ("photos", JOB, "onnx", "alexnet")
    assert {one["node_name"]: one["worker"] for one in said["nodes"]} == {
        "alpha": "loading",
        "beta": "ready",
        "gamma": "ready",
    }
    assert (said["ready"], said["wanted"]) == (2, 3)
    assert (said["jobs"], said["said"]) == ([LINE], "")


def test_a_pool_whose_master_does_not_answer_is_shown_without_its_jobs(known: FlaskClient, pool: Place) -> None:
    pool.listeners[0].close()

    said = known.get(PHOTOS).get_json()

    assert said["jobs"] is None
    assert f"the master of the pool {JOB} does not answer" in said["said"]
    assert (said["idle"], [one["node_name"] for one in said["nodes"]]) == ("30m", ["alpha"])


class SlowWatches(dict[str, Any]):
    """What is taken from here is put back only once another thread had time to look for it."""

    def __init__(self) -> None:
        self.taken, self.looked_for = threading.Event(), threading.Event()

    def pop(self, key: str, *default: Any) -> Any:
        found = super().pop(key, *default)
        (self.looked_for if self.taken.is_set() else self.taken).set()
        self.looked_for.wait(0.5)
        return found


def test_two_who_look_at_a_job_at_once_both_see_what_its_silent_master_said_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watches, says = Watches(), [JobStatus(JOB, "running", 1, 0, 0, 0, 0.0, None, ())]
    known = Known(Application(JOB, "", "RUNNING", "UNDEFINED", 0.0, "", "N/A", 0.0), "me", "", None, None)

    def look() -> Sight:
        return watches.look(known, lambda _: says[0] if says else None)

    look()
    says.clear()
    slow = SlowWatches()
    slow.update(watches._watches)
    monkeypatch.setattr(watches, "_watches", slow)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(look)
        assert slow.taken.wait(60)
        second = threads.submit(look)
        assert [one.result(60).status is not None for one in (first, second)] == [True, True]


def test_a_pool_that_is_not_up_yet_says_so(known: FlaskClient, hadoop: Hadoop, pool: Place) -> None:
    del hadoop.stored[f"{FOLDER}/master.json"]
    hadoop.app["state"] = "ACCEPTED"

    said = known.get(PHOTOS).get_json()

    assert (said["nodes"], said["wanted"], said["silent_seconds"]) == ([], None, None)
    assert "it is not up yet; YARN may have no room for it" in said["said"]


@pytest.mark.parametrize("name", ["other", "no%20name"])
def test_what_no_pool_has_as_its_name_is_not_found(known: FlaskClient, pool: Place, name: str) -> None:
    answers = [known.get(f"/api/v1/pools/{name}"), known.post(f"/api/v1/pools/{name}/jobs", json=BODY)]

    assert [one.status_code for one in answers] == [404, 404]
    if name == "other":
        assert all("there is no pool other: me has photos" in one.get_json()["error"]["message"] for one in answers)


def test_when_a_pool_ends_is_known_once_it_is_idle_and_its_master_tells_since_when() -> None:
    application = Application(JOB, "", "RUNNING", "UNDEFINED", 0.0, "", "N/A", 0.0)
    status = JobStatus(JOB, "running", 1, 0, 0, 0, 0.0, None, ())

    def ends_in(section: dict[str, Any] | None, idle: float | None = 1800.0, silent: float = 0.0) -> float | None:
        return _ends_in(idle, Sight(application, replace(status, section=section), silent))

    assert ends_in({IDLE_FOR: 100}) == 1700.0
    assert ends_in({IDLE_FOR: 100}, silent=50.0) == 1650.0
    assert ends_in({IDLE_FOR: 5000}) == 0.0
    unknown = [
        ends_in({IDLE_FOR: 0}),
        ends_in({}),
        ends_in(None),
        ends_in({IDLE_FOR: "x"}),
        ends_in({IDLE_FOR: 9}, None),
    ]
    assert unknown == [None] * 5
    assert _ends_in(1800.0, Sight(application)) is None


def test_a_job_is_given_as_the_command_gives_it(known: FlaskClient, pool: Place, document: dict[str, Any]) -> None:
    pool.master.answers.append({"job_id": LINE["job_id"], "notes": ["by free CPU"]})
    wanted = BODY | {"weight": 2.5, "steal": False, "policy": "even", "engine": "onnx", "model": "alexnet", "batch": 32}

    answer = known.post(f"{PHOTOS}/jobs", json=wanted)

    assert answer.status_code == 201, answer.text
    check(document, "/pools/{pool}/jobs", "post", 201, answer.get_json())
    assert answer.get_json() == {"job_id": LINE["job_id"], "notes": ["by free CPU"]}
    ((call, sent),) = pool.master.heard
    wish = msgspec.json.decode(sent, type=JobWish)
    assert call == "/pool/submit"
    assert (wish.input, wish.output, wish.capability, wish.policy) == ("/in", "/out", "weight", "even")
    assert (wish.weight, wish.steal, wish.cold_start, wish.fallback) == (2.5, False, None, None)


def test_the_body_is_described_with_an_example_that_is_taken(
    known: FlaskClient, pool: Place, document: dict[str, Any]
) -> None:
    pool.master.answers.append({"job_id": LINE["job_id"], "notes": []})
    model = document["definitions"]["PoolJobBody"]

    assert against(model, model["example"], document["definitions"], closed=True) == []
    assert set(model["example"]) == set(model["properties"])
    assert set(model["required"]) == {"input", "output", "capability"}
    assert known.post(f"{PHOTOS}/jobs", json=model["example"]).status_code == 201


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"input": ""}, "input"),
        ({"output": None}, "output"),
        ({"capability": 3}, "capability"),
        ({"weight": 0}, "weight"),
        ({"steal": "no"}, "steal"),
        ({"batch": 0}, "batch"),
        ({"vcores": 2}, "vcores"),
    ],
)
def test_a_body_that_is_wrong_is_refused_by_its_field(
    known: FlaskClient, pool: Place, given: dict[str, Any], field: str
) -> None:
    answer = known.post(f"{PHOTOS}/jobs", json=BODY | given)

    assert (answer.status_code, answer.get_json()["error"]["field"]) == (422, field)
    assert pool.master.heard == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"engine": "mxnet"}, "the pool photos has the engine onnx, and the job wants mxnet"),
        ({"model": "unet"}, "the pool photos has the model alexnet, and the job wants unet"),
        ({"batch": 7}, "the pool photos has --batch 32, and the job wants 7"),
    ],
)
def test_a_job_that_wants_another_network_is_refused_before_the_pool_is_asked(
    known: FlaskClient, pool: Place, given: dict[str, Any], said: str
) -> None:
    answer = known.post(f"{PHOTOS}/jobs", json=BODY | given)

    assert answer.status_code == 409
    assert said in answer.get_json()["error"]["message"]
    assert pool.master.heard == []


@pytest.mark.parametrize(
    ("refused", "passes", "status"),
    [
        ("the pool photos is full: it works on 16 jobs", True, 503),
        ("no worker of the pool photos is ready", True, 503),
        ("pool_1_0001_1 writes to /out already", False, 409),
    ],
)
def test_what_the_pool_refuses_is_a_sentence_and_tells_whether_to_ask_again(
    known: FlaskClient, pool: Place, refused: str, passes: bool, status: int
) -> None:
    pool.master.answers.append(Refusal(refused, "do something", passes).to_json())

    answer = known.post(f"{PHOTOS}/jobs", json=BODY)

    assert answer.status_code == status
    assert answer.get_json()["error"]["message"] == f"{refused}: do something"
    assert (answer.headers.get("Retry-After") == "1") == passes


def test_a_master_that_is_away_is_not_waited_for_long(
    known: FlaskClient, pool: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.dashboard.pools.AWAY_SECONDS", 0.0)
    pool.listeners[0].close()

    answer = known.post(f"{PHOTOS}/jobs", json=BODY)

    assert answer.status_code == 503
    assert "the master of the pool" in answer.get_json()["error"]["message"]


def test_a_pool_that_ends_while_it_is_given_a_job_is_not_found(
    known: FlaskClient, hadoop: Hadoop, pool: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.listeners[0].close()
    ask = pool_client.Pools.find

    def find_the_last_time(pools: pool_client.Pools, name: str) -> pool_client.Pool:
        found = ask(pools, name)
        hadoop.app["state"] = "FINISHED"
        return found

    monkeypatch.setattr(pool_client.Pools, "find", find_the_last_time)

    answer = known.post(f"{PHOTOS}/jobs", json=BODY)

    assert (answer.status_code, "has ended" in answer.get_json()["error"]["message"]) == (404, True), answer.text


def test_no_more_jobs_are_given_at_once_than_leave_room_for_other_calls() -> None:
    full = Giving()
    with ExitStack() as places:
        for number in range(MOST_AT_ONCE):
            places.enter_context(full._places.take(f"user{number}"))

        with pytest.raises(NotReady, match="4 jobs are being given to pools already"):
            full.give("maria", "photos", NONE, PoolJobBody("/in", "/out", "weight"), NONE)


def test_one_user_gives_half_of_the_jobs_at_once_and_others_find_room(
    known: FlaskClient, pool: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def post() -> TestResponse:
        return known.application.test_client().post(f"{PHOTOS}/jobs", json=BODY)

    refused, others = ask_once_too_often(post, pool, {"job_id": LINE["job_id"], "notes": []}, MOST_OF_ONE, monkeypatch)

    assert others == [201] * (MOST_OF_ONE + 1)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    assert refused.get_json()["error"]["message"] == (
        "2 jobs of maria are being given to pools already, and one user gets no more at once: "
        "try again when one has its answer"
    )


def test_room_is_free_again_whatever_became_of_a_job(known: FlaskClient, pool: Place) -> None:
    for _ in range(MOST_AT_ONCE + 1):
        assert known.post("/api/v1/pools/other/jobs", json=BODY).status_code == 404
    for _ in range(MOST_AT_ONCE + 1):
        assert known.post(f"{PHOTOS}/jobs", json=BODY | {"batch": 7}).status_code == 409
