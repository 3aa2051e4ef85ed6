"""Training scripts track their runs with MLflow's client as it is; the service is what they name as its server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from infosvc.wire.client import InfoClient
from infosvc.wire.records import Role
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import TaskNews, TaskProgress, TaskState
from tests.infosvc.conftest import TOKEN
from tests.infosvc.mlflow_client import run_script

if TYPE_CHECKING:
    from tests.infosvc.conftest import Served, Serving

pytestmark = pytest.mark.timeout(2000)  # a busy machine makes it slow, and that is not a fault

TRAIN = """
from mlflow.entities import Metric, Param, RunTag

experiment = mlflow.set_experiment("digits")
with mlflow.start_run(run_name="parent", description="both") as parent:
    mlflow.log_param("net", "resnet-50")
    mlflow.log_params({"rate": 0.1, "layers": 3})
    for step in range(3):
        mlflow.log_metric("loss", 1 / (step + 1), step=step)
    mlflow.log_metrics({"accuracy": 0.5, "lost": float("nan"), "far": float("-inf")})
    mlflow.set_tag("team", "vision")
    mlflow.set_tags({"a name": "ü%", "x": "1"})
    with mlflow.start_run(run_name="child", nested=True) as child:
        mlflow.log_metric("loss", 0.25)
try:
    with mlflow.start_run(run_name="broken") as broken:
        raise ValueError("on purpose")
except ValueError:
    pass
batch = client.create_run(experiment.experiment_id, run_name="batch").info.run_id
for part in range(10):
    points = [Metric("many", part * 1000 + at + 0.1, 1_700_000_000_000 + at, part * 1000 + at) for at in range(1000)]
    client.log_batch(batch, points, [Param(f"p{part}", "v")], [RunTag(f"t{part}", "w")])
client.set_terminated(batch, "KILLED")
said = [one.info.run_id for one in (parent, child, broken)] + [batch]
"""

LOOK = """
parent, child, broken, batch = json.loads(os.environ["RUNS"])
run = client.get_run(parent)
found = {name: client.get_run(run_id) for name, run_id in
         (("parent", parent), ("child", child), ("broken", broken), ("batch", batch))}
many = client.get_metric_history(batch, "many")

def names(text="", **asked):
    runs = mlflow.search_runs(
        experiment_names=["digits"], filter_string=text, output_format="list", **asked)
    return [one.data.tags["mlflow.runName"] for one in runs]

pages, token = [], None
while True:
    page = client.search_runs([run.info.experiment_id], max_results=3, page_token=token, order_by=["run_name"])
    pages.append([one.info.run_name for one in page])
    token = page.token
    if not token:
        break
said = {
    "params": run.data.params,
    "metrics": {name: repr(value) for name, value in run.data.metrics.items()},
    "tags": {name: run.data.tags[name] for name in ("team", "a name", "x", "mlflow.runName", "mlflow.note.content")},
    "user": run.info.user_id,
    "status": {name: one.info.status for name, one in found.items()},
    "times": [one.info.start_time <= one.info.end_time for one in found.values()],
    "parent": found["child"].data.tags["mlflow.parentRunId"] == parent,
    "loss": [(one.step, one.value) for one in client.get_metric_history(parent, "loss")],
    "nothing": len(client.get_metric_history(parent, "unknown")),
    "many": [len(many), many[0].value, many[-1].value, many[-1].step, len({one.step for one in many})],
    "last": found["batch"].data.metrics["many"],
    "batch": [len(found["batch"].data.params), found["batch"].data.tags["t9"]],
    "pages": pages,
    "experiments": sorted(one.name for one in mlflow.search_experiments()),
    "by_name": [one.name for one in mlflow.search_experiments(filter_string="name LIKE 'dig%'")],
    "searches": {
        "all": sorted(names()),
        "metric": names("metrics.loss < 0.3"),
        "texts": names("params.net LIKE 'res%-_0' AND tags.`a name` = 'ü%' AND params.rate = '0.1'"),
        "case": [names("params.net LIKE 'RES%'"), names("params.net ILIKE 'RES%'")],
        "status": names("attributes.status = 'FAILED'"),
        "parent": names(f"tags.mlflow.parentRunId = '{parent}'"),
        "order": names("metrics.loss <= 1", order_by=["metrics.loss DESC"]),
        "missing last": names(order_by=["metrics.loss ASC", "attributes.run_name DESC"]),
        "most": len(names(max_results=2)),
    },
}
"""

FOUND: dict[str, Any] = {
    "params": {"net": "resnet-50", "rate": "0.1", "layers": "3"},
    "metrics": {"loss": repr(1 / 3), "accuracy": "0.5", "lost": "nan", "far": "-inf"},
    "tags": {"team": "vision", "a name": "ü%", "x": "1", "mlflow.runName": "parent", "mlflow.note.content": "both"},
    "user": "maria",
    "status": {"parent": "FINISHED", "child": "FINISHED", "broken": "FAILED", "batch": "KILLED"},
    "times": [True] * 4,
    "parent": True,
    "loss": [[0, 1.0], [1, 0.5], [2, 1 / 3]],
    "nothing": 0,
    "many": [10_000, 0.1, 9999.1, 9999, 10_000],
    "last": 9999.1,
    "batch": [10, "w"],
    "pages": [["batch", "broken", "child"], ["parent"]],
    "experiments": ["Default", "digits"],
    "by_name": ["digits"],
    "searches": {
        "all": ["batch", "broken", "child", "parent"],
        "metric": ["child"],
        "texts": ["parent"],
        "case": [[], ["parent"]],
        "status": ["broken"],
        "parent": ["child"],
        "order": ["parent", "child"],
        "missing last": ["child", "parent", "broken", "batch"],
        "most": 2,
    },
}


def token_of(service: Served, name: str) -> str:
    """A new token of a user."""
    return service.client.create_token(name, Role.USER)[1]


def test_a_script_tracks_its_runs_and_finds_them_again_after_a_restart(database: str, serve: Serving) -> None:
    with serve(database) as service:
        maria = token_of(service, "maria")
        runs = run_script(service.url, maria, TRAIN)
    with serve(database) as service:
        assert run_script(service.url, maria, LOOK, RUNS=str(runs).replace("'", '"')) == FOUND


def test_users_see_their_own_runs_and_admins_all(sqlite_url: str, serve: Serving) -> None:
    script = """
    said = {}
    for name in ("maria", "otto", "admin"):
        os.environ["MLFLOW_TRACKING_TOKEN"] = os.environ[name]
        found = said[name] = {}
        if name != "admin":
            experiment = mlflow.set_experiment("same").experiment_id
            with mlflow.start_run(run_name=f"of {name}") as run:
                mlflow.log_param("who", name)
            with mlflow.start_run(run_name=f"default of {name}", experiment_id="0"):
                pass
        ids = [one.experiment_id for one in client.search_experiments()]
        found["experiments"] = len(ids)
        found["runs"] = sorted(one.info.run_name for one in client.search_runs(ids))
        if name == "maria":
            of_maria, experiment_of_maria = run.info.run_id, experiment
        found["get"] = refusal(client.get_run, of_maria).replace(of_maria, "ID")
        found["unknown"] = refusal(client.get_run, "0" * 32).replace("0" * 32, "ID")
        found["log"] = refusal(client.log_metric, of_maria, "loss", 1).replace(of_maria, "ID")
        if name == "otto":
            found["into"] = refusal(client.create_run, experiment_of_maria).replace(experiment_of_maria, "ID")
        if name == "admin":
            found["owner"] = client.create_run(experiment_of_maria).info.user_id
        found["by id"] = refusal(client.get_experiment, experiment_of_maria).replace(experiment_of_maria, "ID")
    os.environ["MLFLOW_TRACKING_TOKEN"] = "nobody's"
    said["wrong"] = refusal(mlflow.set_experiment, "same")
    del os.environ["MLFLOW_TRACKING_TOKEN"]
    said["none"] = refusal(client.get_run, of_maria)
    os.environ["MLFLOW_TRACKING_TOKEN"] = os.environ["reader"]
    said["reader"] = refusal(client.get_run, of_maria)
    """
    with serve(sqlite_url) as service:
        tokens = {name: token_of(service, name) for name in ("maria", "otto")}
        reader = service.client.create_token("r", Role.READER)[1]
        said = run_script(service.url, TOKEN, script, admin=TOKEN, reader=reader, **tokens)
    no_run = "RestException: RESOURCE_DOES_NOT_EXIST: no run has the id 'ID': search_runs shows those that there are"
    for name in ("maria", "otto"):
        assert said[name]["runs"] == [f"default of {name}", f"of {name}"] and said[name]["experiments"] == 2
        assert said[name]["unknown"] == no_run
    assert [said["otto"][call] for call in ("get", "log")] == [no_run] * 2
    assert "no experiment has the id 'ID'" in said["otto"]["into"] and "'ID'" in said["otto"]["by id"]
    assert said["maria"]["get"] == said["admin"]["get"] == "nothing was refused"
    assert said["admin"]["owner"] == "maria"
    assert said["admin"]["runs"] == ["default of maria", "default of otto", "of maria", "of otto"]
    assert said["wrong"].startswith("RestException: UNAUTHENTICATED: the call shows a token that this service does not")
    assert said["none"].startswith("RestException: UNAUTHENTICATED: the call shows no token")
    assert said["reader"].startswith("RestException: PERMISSION_DENIED: a token of role reader may not do this")


def test_the_client_shows_our_sentence_when_something_is_refused(
    sqlite_url: str, serve: Serving, tmp_path: Any
) -> None:
    script = """
    experiment = mlflow.set_experiment("digits").experiment_id
    with open(os.environ["FILE"], "w") as file:
        file.write("x" * 5_000_000)
    with open(os.environ["FILE"] + ".small", "w") as file:
        file.write("x")
    with mlflow.start_run() as run:
        mlflow.log_param("net", "one")
        said = {
            "param": refusal(mlflow.log_param, "net", "two"),
            "again": refusal(client.create_experiment, "digits"),
            "filter": refusal(mlflow.search_runs, filter_string="metrics.loss < 1 OR 2", output_format="list"),
            "artifact": refusal(mlflow.log_artifact, os.environ["FILE"] + ".small"),
            "large artifact": refusal(mlflow.log_artifact, os.environ["FILE"]),
            "text": refusal(mlflow.log_text, "x", "x.txt"),
            "artifacts": refusal(client.list_artifacts, run.info.run_id),
            "restore": refusal(client.restore_run, run.info.run_id),
            "model": refusal(client.create_logged_model, experiment),
            "models": len(client.search_logged_models([experiment])),
        }
    client.delete_run(run.info.run_id)
    said["gone"] = refusal(client.get_run, run.info.run_id)
    said["left"] = len(client.search_runs([experiment]))
    """
    with serve(sqlite_url) as service:
        said = run_script(service.url, token_of(service, "maria"), script, FILE=str(tmp_path / "large"))
    assert "the param 'net' has another value already" in said["param"]
    assert "RESOURCE_ALREADY_EXISTS: maria has an experiment 'digits'" in said["again"]
    assert "INVALID_PARAMETER_VALUE: the filter has something other than AND" in said["filter"]
    for call in ("artifact", "large artifact", "text", "artifacts"):
        assert "this service keeps no files of runs" in said[call], said[call]
    assert "POST /api/2.0/mlflow/runs/restore is not supported here" in said["restore"]
    assert "is not supported here" in said["model"] and said["models"] == 0
    assert "no run has the id" in said["gone"] and said["left"] == 0


def test_inside_a_task_the_run_is_the_task(sqlite_url: str, serve: Serving) -> None:
    script = """
    before = client.search_runs(["0"])
    with mlflow.start_run() as run:
        mlflow.log_metric("loss", 0.5)
        mlflow.set_tag("mlflow.source.name", "train.py")
        mlflow.log_param("net", "resnet")
    mine = client.get_run(run.info.run_id)
    said = {
        "before": len(before), "id": run.info.run_id, "name": mine.info.run_name, "status": mine.info.status,
        "start": mine.info.start_time, "end": mine.info.end_time, "source": mine.data.tags["mlflow.source.name"],
        "tag": mine.data.tags["mlflow.runName"], "metrics": mine.data.metrics, "params": mine.data.params,
        "found": [one.info.run_id for one in client.search_runs(["0"], "status = 'RUNNING'")],
        "delete": refusal(client.delete_run, run.info.run_id),
        "other": refusal(client.get_run, os.environ["OTHER"]),
    }
    """
    with serve(sqlite_url) as service, InfoClient(service.url, token_of(service, "otto")) as otto:
        token = token_of(service, "maria")
        with InfoClient(service.url, token) as maria:
            task = maria.submit_task(TaskSpec(["train"], name="mnist"))
            other = otto.submit_task(TaskSpec(["x"])).task_id
            running = service.client.put_task_news(task.task_id, TaskNews(TaskState.RUNNING, attempt=1))
            said = run_script(service.url, token, script, MLFLOW_RUN_ID=task.task_id, OTHER=other)
            assert said["before"] == 0 and said["found"] == [said["id"]] == [task.task_id]
            assert (said["name"], said["tag"], said["status"], said["end"]) == ("mnist", "mnist", "RUNNING", None)
            assert said["start"] == round((running.started_at or 0) * 1000)
            assert (said["source"], said["metrics"], said["params"]) == ("train.py", {"loss": 0.5}, {"net": "resnet"})
            assert f"remove it with `nodewise task rm {task.task_id}`" in said["delete"]
            assert "no run has the id" in said["other"]
            assert maria.task(task.task_id) == running
        service.client.put_task_news(task.task_id, TaskNews(TaskState.LOST))
        ended = service.ask("GET", f"/api/2.0/mlflow/runs/get?run_id={task.task_id}", token=token).json["run"]["info"]
        assert ended["status"] == "FAILED" and ended["end_time"] >= ended["start_time"]


def test_the_run_of_a_task_stands_in_the_experiment_that_the_task_names(sqlite_url: str, serve: Serving) -> None:
    script = """
    named = os.environ.pop("NAMED"), os.environ.pop("OTHER")
    said = []
    for run_id in named:
        os.environ["MLFLOW_RUN_ID"] = run_id
        if run_id == named[0]:
            mlflow.set_experiment("digits")
        said.append(refusal(mlflow.start_run))
        mlflow.end_run()
    os.environ.pop("MLFLOW_RUN_ID", None)
    said.append([one.info.run_id for one in mlflow.search_runs(experiment_names=["digits"], output_format="list")])
    said.append(sorted(one.name for one in client.search_experiments()))
    """
    with serve(sqlite_url) as service:
        token = token_of(service, "maria")
        with InfoClient(service.url, token) as maria:
            variables = {"MLFLOW_EXPERIMENT_NAME": "digits"}
            named, alone = (
                maria.submit_task(TaskSpec(["x"], name=name, variables=given)).task_id
                for name, given in (("named", variables), ("alone", {"MLFLOW_EXPERIMENT_NAME": "letters"}))
            )
            said = run_script(service.url, token, script, NAMED=named, OTHER=alone)
            point = {"run_id": alone, "key": "loss", "value": 1}
            assert service.ask("POST", "/api/2.0/mlflow/runs/log-metric", point, token).status == 200
            found = service.ask("POST", "/api/2.0/mlflow/experiments/search", {}, token).json["experiments"]
    assert said[0] == "nothing was refused" and "does not match environment run ID" in said[1]
    assert said[2:] == [[named], ["Default", "digits"]]
    assert sorted(one["name"] for one in found) == ["Default", "digits", "letters"]  # made with the run


def test_a_script_in_a_task_needs_no_change_and_its_artifacts_are_the_task_s_output(
    sqlite_url: str, serve: Serving, tmp_path: Path
) -> None:
    script = """
    with open(os.environ["FILE"], "w") as file:
        file.write("weights")
    runs = []
    for number in range(2):
        mlflow.set_experiment("digits")
        with mlflow.start_run() as run:
            mlflow.log_artifact(os.environ["FILE"], "model")
            runs.append(run.info.run_id)
    said = {
        "runs": runs,
        "listed": [one.path for one in client.list_artifacts(runs[0], "model")],
        "found": sorted(
            one.info.run_id for one in mlflow.search_runs(experiment_names=["digits"], output_format="list")
        ),
        "letters": mlflow.set_experiment("letters").name,
        "still": client.get_run(runs[0]).info.experiment_id == client.get_experiment_by_name("digits").experiment_id,
        "delete": refusal(client.delete_run, runs[1]),
    }
    """
    output = tmp_path / ".output"
    output.mkdir()
    with serve(sqlite_url) as service, InfoClient(service.url, token_of(service, "maria")) as maria:
        task = maria.submit_task(TaskSpec(["train"], output="/out"))
        token = service.client.task_token(task.task_id)
        with InfoClient(service.url, token) as runner:
            runner.put_task_progress(task.task_id, TaskProgress(1, running=True, output_folder=str(output)))
        said = run_script(service.url, token, script, MLFLOW_RUN_ID=task.task_id, FILE=str(tmp_path / "net.bin"))
        outside = service.ask("GET", f"/api/2.0/mlflow/runs/get?run_id={task.task_id}").json["run"]["info"]
    first, second = said["runs"]
    assert first == task.task_id and said["found"] == sorted(said["runs"])
    assert said["listed"] == ["model/net.bin"] and (said["letters"], said["still"]) == ("letters", True)
    assert "a token of role task may not do this" in said["delete"]
    assert outside["artifact_uri"].startswith("mlflow-artifacts:"), "nobody else can reach the node's folder"
    assert sorted(str(path.relative_to(output)) for path in output.rglob("*.bin")) == sorted(
        ["model/net.bin", f"{second}/model/net.bin"]
    )


def test_a_task_without_an_output_keeps_no_artifacts_and_says_so(
    sqlite_url: str, serve: Serving, tmp_path: Path
) -> None:
    script = """
    with mlflow.start_run() as run:
        said = refusal(mlflow.log_text, "x", "x.txt")
    """
    with serve(sqlite_url) as service:
        task = service.client.submit_task(TaskSpec(["train"]))
        token = service.client.task_token(task.task_id)
        said = run_script(service.url, token, script, MLFLOW_RUN_ID=task.task_id)
    assert "run the program as a task that has an output" in said


def test_a_client_that_is_not_there_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr("tests.infosvc.mlflow_client.PYTHON", tmp_path / "python")
    with pytest.raises(pytest.fail.Exception, match="scripts/setup --dev"):
        run_script("http://127.0.0.1:1", "", "said = 1")
