"""Runs that MLflow's client tracks: how much is kept, for how long, and that nothing sent breaks the service."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from infosvc.core.service import components_of
from infosvc.settings import Settings
from infosvc.state import forgetting
from infosvc.state.forgetting import Rest
from infosvc.state.transaction import Past
from infosvc.tasks.retention import DAY
from infosvc.tracking import bounds, experiments
from infosvc.wire.client import InfoClient
from infosvc.wire.records import Role
from infosvc.wire.task_spec import TaskSpec
from tests.infosvc.conftest import TOKEN, Served

if TYPE_CHECKING:
    from tests.infosvc.conftest import Answer, Hands, Serving

BELOW = "/api/2.0/mlflow"


def post(service: Served, call: str, body: Any, token: str = TOKEN) -> Answer:
    """One call as MLflow's client makes it."""
    return service.ask("POST", f"{BELOW}/{call}", body, token)


def begin(service: Served, token: str = TOKEN, **more: Any) -> str:
    """A new run; its id."""
    return str(post(service, "runs/create", more, token).json["run"]["info"]["run_id"])


def log(service: Served, run_id: str, number: int, name: str = "loss", token: str = TOKEN) -> Answer:
    """So many points."""
    points = [{"key": name, "value": at, "timestamp": at, "step": at} for at in range(number)]
    return post(service, "runs/log-batch", {"run_id": run_id, "metrics": points}, token)


def runs(service: Served, token: str = TOKEN, **more: Any) -> list[str]:
    """The names of the runs in the experiment Default, the newest first."""
    found = post(service, "runs/search", {"experiment_ids": ["0"]} | more, token).json["runs"]
    return [run["info"]["run_name"] for run in found]


def history(service: Served, run_id: str, query: str = "metric_key=loss") -> Any:
    """A piece of the points of a metric."""
    return service.ask("GET", f"{BELOW}/metrics/get-history?run_id={run_id}&{query}").json


def points_in(url: str) -> int:
    """How many points the database holds."""
    engine = create_engine(url)
    with engine.connect() as connection:
        found = connection.scalar(text("SELECT count(*) FROM t_Metric"))
    engine.dispose()
    return int(found or 0)


def test_a_refusal_has_mlflows_form_and_names_the_call(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url) as service:
        unknown = service.ask("GET", f"{BELOW}/traces/1")
        assert unknown.status == 404 and set(unknown.json) == {"error_code", "message"}
        assert unknown.json["error_code"] == "ENDPOINT_NOT_FOUND"
        assert f"GET {BELOW}/traces/1 is not supported here" in unknown.json["message"]
        assert service.ask("PATCH", "/api/3.0/mlflow/traces/1", {}).json["error_code"] == "ENDPOINT_NOT_FOUND"
        assert post(service, "runs/get", {}).json["error_code"] == "ENDPOINT_NOT_FOUND"
        assert post(service, "runs/create", "{").json["error_code"] == "INVALID_PARAMETER_VALUE"
        assert post(service, "runs/create", {}, "wrong").json["error_code"] == "UNAUTHENTICATED"
        assert service.ask("GET", "/api/v1/tasks/x").error["code"] == "not_found"  # any other call has our form


def test_a_history_comes_in_parts(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url) as service:
        run_id = begin(service)
        log(service, run_id, 5)
        log(service, run_id, 3, "other")
        first = history(service, run_id, "metric_key=loss&max_results=3")
        assert [point["step"] for point in first["metrics"]] == [0, 1, 2]
        rest = history(service, run_id, f"metric_key=loss&max_results=3&page_token={first['next_page_token']}")
        assert [point["step"] for point in rest["metrics"]] == [3, 4] and "next_page_token" not in rest


def test_the_last_point_of_a_metric_is_that_of_the_largest_step(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url) as service:
        run_id = begin(service)
        for step, timestamp, value in ((5, 1, 0.5), (3, 9, 0.3), (5, 2, 0.6), (5, 1, 0.7)):
            point = {"run_id": run_id, "key": "loss", "value": value, "timestamp": timestamp, "step": step}
            assert post(service, "runs/log-metric", point).status == 200
        (last,) = service.ask("GET", f"{BELOW}/runs/get?run_id={run_id}").json["run"]["data"]["metrics"]
        assert last == {"key": "loss", "value": 0.6, "timestamp": 2, "step": 5}


def test_a_run_has_bounds(sqlite_url: str, serve: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MOST_PARAMS", 2)
    monkeypatch.setattr(bounds, "MOST_TAGS", 2)  # one is the run's name
    monkeypatch.setattr(bounds, "MOST_METRICS", 2)
    monkeypatch.setattr(bounds, "LARGEST_RUN", 2_000)
    with serve(sqlite_url, points_of_run=10) as service:
        run_id = begin(service)
        for call in ("log-parameter", "set-tag"):
            for key in range(1 if call == "set-tag" else 2):
                assert post(service, f"runs/{call}", {"run_id": run_id, "key": f"k{key}", "value": "v"}).status == 200
            assert post(service, f"runs/{call}", {"run_id": run_id, "key": "more", "value": "v"}).status == 409
        assert log(service, run_id, 5).status == log(service, run_id, 3, "other").status == 200
        assert "3 metrics, and may have 2" in log(service, run_id, 1, "third").json["message"]
        assert "11 points of metrics, and may have 10" in log(service, run_id, 3).json["message"]
        assert log(service, run_id, 2).status == 200
        long = {"run_id": run_id, "key": "k0", "value": "v" * 3000}
        assert "bytes of params" in post(service, "runs/set-tag", long).json["message"]
        assert len(history(service, run_id)["metrics"]) == 7
    assert points_in(sqlite_url) == 10


def test_users_and_all_together_have_bounds(sqlite_url: str, serve: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MOST_OF_USER", 3)
    with serve(sqlite_url, most_tasks=5, points_of_runs=8_000) as service:
        maria, otto, eva = (service.client.create_token(name, Role.USER)[1] for name in ("maria", "otto", "eva"))
        for number in range(4):
            begin(service, maria, run_name=f"m{number}")
        assert runs(service, maria) == ["m3", "m2", "m1"]  # the user's own oldest goes
        for name in ("a", "b", "c"):
            begin(service, otto, run_name=name)
        assert (runs(service, maria), runs(service, otto)) == (["m3", "m2"], ["c", "b", "a"])  # the oldest of all goes
        run_id = begin(service, eva)
        assert log(service, run_id, 1000, token=eva).status == 200
        assert log(service, run_id, 999, token=eva).status == 200
        refused = log(service, run_id, 1000, token=eva)
        assert refused.status == 409 and "the runs of eva would have 2999 points" in refused.json["message"]
    with serve(sqlite_url, bytes_of_runs=2_000) as service:
        refused = post(service, "runs/create", {"tags": [{"key": "k", "value": "v" * 600}]}, eva)
        assert refused.status == 409 and "the runs of eva would have" in refused.json["message"]


def test_experiments_have_bounds_and_the_oldest_without_runs_goes(
    sqlite_url: str, serve: Serving, hands: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiments, "MOST_OF_USER", 2)
    with serve(sqlite_url, hands) as service:
        for number in range(3):
            hands.turn(1)
            made = post(service, "experiments/create", {"name": f"e{number}"}).json["experiment_id"]
            begin(service, experiment_id=made)
            if number == 0:
                service.ask("POST", f"{BELOW}/runs/delete", {"run_id": run_in(service, made)})
        found = post(service, "experiments/search", {}).json["experiments"]
        assert [one["name"] for one in found] == ["e2", "e1", "Default"]
        refused = post(service, "experiments/create", {"name": "e3"})
        assert refused.status == 409 and "admin have 2 experiments with runs" in refused.json["message"]


def run_in(service: Served, experiment_id: str) -> str:
    """The only run of an experiment."""
    (run,) = post(service, "runs/search", {"experiment_ids": [experiment_id]}).json["runs"]
    return str(run["info"]["run_id"])


def test_old_runs_go_with_their_points_and_their_experiments(
    sqlite_url: str, serve: Serving, hands: Hands, eventually: Any
) -> None:
    with serve(sqlite_url, hands, task_days=10) as service:
        upkeep = components_of(service.server.app).tasks
        made = post(service, "experiments/create", {"name": "old"}).json["experiment_id"]
        old, kept = begin(service, experiment_id=made), begin(service, run_name="kept")
        log(service, old, 1000)
        log(service, kept, 10)
        hands.turn(9 * DAY)
        log(service, kept, 1)  # a run that goes on is not old
        hands.turn(2 * DAY)
        upkeep.look()
        assert runs(service, experiment_ids=["0", made]) == ["kept"]
        assert [one["name"] for one in post(service, "experiments/search", {}).json["experiments"]] == ["Default"]
        eventually(lambda: points_in(sqlite_url) == 11)
    with serve(sqlite_url, hands) as service:
        assert runs(service, experiment_ids=["0", made]) == ["kept"]


def test_many_points_are_forgotten_in_parts_and_nobody_sees_them_meanwhile(
    database: str, serve: Serving, monkeypatch: pytest.MonkeyPatch, eventually: Any
) -> None:
    monkeypatch.setattr(forgetting, "PART", 100)
    with serve(database) as service:
        task = service.client.submit_task(TaskSpec(["x"]), "same")
        log(service, task.task_id, 1000)
        service.client.stop_task(task.task_id)
        service.client.remove_task(task.task_id)
        assert service.ask("GET", f"{BELOW}/runs/get?run_id={task.task_id}").status == 404
        again = service.client.submit_task(TaskSpec(["x"]), "same")
        assert again.task_id == task.task_id and history(service, again.task_id) == {"metrics": []}
        log(service, again.task_id, 5)
        assert len(history(service, again.task_id)["metrics"]) == 5
        eventually(lambda: points_in(database) == 5)
    with serve(database) as service:
        assert len(history(service, again.task_id)["metrics"]) == 5


def test_points_that_are_forgotten_hide_no_history_of_values() -> None:
    rest = Rest(1, Past(None, None, run_id="r"), 1000)
    assert str(forgetting.is_kept([rest], "cpu", "n1")) == str(forgetting.is_kept([], "cpu", "n1"))
    assert [forgetting.last_forgotten([rest], run_id) for run_id in ("r", "other")] == [1000, 0]


def test_the_run_of_a_task_goes_with_the_task(sqlite_url: str, serve: Serving, hands: Hands) -> None:
    with serve(sqlite_url, hands) as service:
        task = service.client.submit_task(TaskSpec(["x"], name="mine"))
        log(service, task.task_id, 5)
        hands.turn(200 * DAY)
        upkeep = components_of(service.server.app).tasks
        upkeep.look()
        assert runs(service) == ["mine"]
        service.client.stop_task(task.task_id)
        service.client.remove_task(task.task_id)
        assert runs(service) == []
        upkeep.look()
        assert components_of(service.server.app).latest.configuration.runs == {}


def test_notes_leave_no_line_in_the_audit_log_and_the_life_of_a_run_does(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url) as service:
        run_id = begin(service)
        post(service, "runs/log-parameter", {"run_id": run_id, "key": "password", "value": "hidden"})
        post(service, "runs/log-parameter", {"run_id": run_id, "key": "password", "value": "hidden too"})
        log(service, run_id, 10)
        post(service, "runs/update", {"run_id": run_id, "status": "FINISHED"})
        post(service, "runs/delete", {"run_id": run_id})
        said = service.ask("GET", "/api/v1/audit")
        calls = [entry["call"].rpartition("/")[2] for entry in said.json["entries"] if entry["status"] == 200]
        assert calls == ["create", "update", "delete"]
        assert "hidden" not in said.text


def test_a_search_that_takes_too_long_is_ended(
    sqlite_url: str, serve: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(sqlite_url) as service:
        begin(service)
        monkeypatch.setattr("infosvc.tracking.searches.SECONDS", -1.0)
        refused = post(service, "runs/search", {"experiment_ids": ["0"]})
        assert refused.status == 422 and "ask for less" in refused.json["message"]


def test_too_many_calls_with_points_wait_and_then_are_told_to_come_again(
    sqlite_url: str, serve: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("infosvc.tracking.recording.PATIENCE_SECONDS", 0.05)
    with serve(sqlite_url) as service:
        run_id = begin(service)
        turns = components_of(service.server.app).turns
        with turns.wait():
            assert log(service, run_id, 1).status == 200
            with turns.wait():
                refused = log(service, run_id, 1)
        assert (refused.status, refused.json["error_code"]) == (503, "TEMPORARILY_UNAVAILABLE")
        assert log(service, run_id, 1).status == 200


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["NaN", "0", "RUNNING", "ü\n"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ["run_id", "experiment_id", "name", "key", "value", "step", "timestamp", "status", "end_time", "start_time"]
FIELDS += ["run_name", "metrics", "params", "tags", "filter", "order_by", "max_results", "page_token", "experiment_ids"]
CALLS = [
    f"runs/{name}" for name in ("create", "update", "delete", "log-metric", "log-parameter", "set-tag", "log-batch")
]
CALLS += ["runs/search", "experiments/create", "experiments/search"]
ITEM = st.fixed_dictionaries({"key": st.text(max_size=5) | st.just("loss"), "value": JSON}, optional={"step": JSON})


def test_no_body_and_no_query_breaks_the_service(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url, calls_per_second=0, refusals_per_second=0) as service:
        run_id = begin(service)
        seen: set[int] = set()
        bodies = st.dictionaries(st.sampled_from(FIELDS), JSON | st.lists(ITEM, max_size=3), max_size=5)

        @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
        @given(call=st.sampled_from(CALLS), body=bodies, known=st.booleans(), item=ITEM)
        def ask(call: str, body: dict[str, Any], known: bool, item: dict[str, Any]) -> None:
            sent = body | ({"run_id": run_id} | item if known and call != "runs/delete" else {})
            answer = post(service, call, json.dumps(sent))
            seen.add(answer.status)
            assert answer.status < 500, (call, sent, answer.text)
            assert answer.status == 200 or set(answer.json) == {"error_code", "message"}

        ask()
        assert {200, 422} <= seen
        for query in (
            "",
            "run_id=",
            "run_id=x&run_id=y",
            f"run_id={run_id}&metric_key=%00",
            "page_token=-1",
            "max_results=0",
        ):
            assert service.ask("GET", f"{BELOW}/metrics/get-history?{query}").status in (200, 404, 422), query
        assert service.ask("GET", "/readyz").status == 200


def test_the_settings_bound_one_run_below_all() -> None:
    assert Settings.points_of_run * bounds.SHARE_OF_USER <= Settings.points_of_runs


def test_a_user_of_a_name_that_cannot_be_one_is_refused(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url) as service:
        _, token = service.client.create_token("The Boss", Role.ADMIN)
        with InfoClient(service.url, token):
            refused = post(service, "runs/create", {}, token)
        assert (refused.status, refused.json["error_code"]) == (403, "PERMISSION_DENIED")
