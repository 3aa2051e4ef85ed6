"""Events of jobs: told to those who watch, as the list of jobs changes; YARN is played over real HTTP."""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from infosvc.alerts import outside
from infosvc.data import event_sources
from infosvc.http.server import Server
from infosvc.settings import Settings
from infosvc.wire.alerts.alert_client import AlertClient
from infosvc.wire.client import InfoClient
from infosvc.wire.event_stream import EventStream
from infosvc.wire.task_spec import TaskSpec
from jobs.dashboard import calls
from jobs.dashboard.job_events import KEPT_SECONDS, JobEvents
from jobs.dashboard.sources.site import Place, Site
from jobs.dashboard.sources.yarn import Known, parse_known
from nodewise.board import board_calls
from tests.jobs.played import JOB, Hadoop

PLACE = Place(Path("conf"), "http://namenode", "http://yarn", "me")
OTHER = Place(Path("conf"), "http://namenode", "http://other-yarn", "me")
RUNNING = {
    "id": JOB,
    "state": "RUNNING",
    "finalStatus": "UNDEFINED",
    "progress": 25.0,
    "applicationTags": "kind=command",
}


@pytest.fixture
def service(tmp_path: Path, hadoop: Hadoop, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a service with the board, which asks the YARN that is played again and again."""
    monkeypatch.setattr(event_sources, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(outside, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(calls, "LIST_SECONDS", 0.0)
    http = f"http://{hadoop.address}"
    monkeypatch.setattr(Site, "place", lambda self: Place(self.home, http, http, "me"))
    settings = Settings(database=f"sqlite:///{tmp_path}/infosvc.db", token="a-token-for-the-tests")
    server = Server(settings, "127.0.0.1", 0, others=[board_calls(tmp_path)])
    thread = threading.Thread(target=server.run)
    thread.start()
    yield server.url
    server.stop()
    thread.join()


def _next(stream: EventStream) -> dict[str, Any]:
    event = next(stream)
    assert event.type == "job"
    return dict(event.data)


def test_a_job_that_changes_and_ends_is_told_to_all_who_watch(service: str, hadoop: Hadoop) -> None:
    with InfoClient(service) as client, client.events(["job"]) as one, client.events() as other:
        hadoop.wait_for_lists(2)  # what was there before is no news
        hadoop.app |= {"state": "FINISHED", "finalStatus": "SUCCEEDED", "progress": 100.0}
        said = _next(one)
        assert said == _next(other)
    assert said == {
        "job_id": JOB,
        "kind": "",
        "state": "FINISHED",
        "final": "SUCCEEDED",
        "ended": True,
        "progress": 1.0,
    }


def test_an_alert_is_on_for_a_job_that_failed(service: str, hadoop: Hadoop) -> None:
    client = InfoClient(service, "a-token-for-the-tests")
    alert_id = AlertClient(client).add("job failed").alert_id
    hadoop.wait_for_lists(2)
    assert AlertClient(client).find(alert_id).on == ()
    ended = {"state": "FINISHED", "finishedTime": int(1000 * time.time()) + 1000, "diagnostics": "no worker came"}
    hadoop.app |= ended | {"finalStatus": "KILLED", "applicationTags": "kind=command"}
    hadoop.wait_for_lists(hadoop.lists + 3)
    assert AlertClient(client).find(alert_id).on == ()
    hadoop.app |= {"finalStatus": "FAILED"}
    deadline = time.monotonic() + 60
    while not (on := AlertClient(client).find(alert_id).on):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert [(one.about, one.said) for one in on] == [(JOB, "nodewise mxnet_alexnet of me failed: no worker came")]


def test_a_queue_is_stuck_once_yarn_runs_nothing_in_it(service: str, hadoop: Hadoop) -> None:
    client = InfoClient(service, "a-token-for-the-tests")
    task = client.submit_task(TaskSpec(["x"]))
    alert_id = AlertClient(client).add("queue stuck").alert_id
    hadoop.app |= {"queue": "root.default"}
    hadoop.wait_for_lists(hadoop.lists + 100)  # at least one look at alerts, and many at YARN
    assert AlertClient(client).find(alert_id).on == ()
    hadoop.app |= {"state": "FINISHED", "finalStatus": "SUCCEEDED"}
    deadline = time.monotonic() + 60
    while not (on := AlertClient(client).find(alert_id).on):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert [(one.about, one.said) for one in on] == [
        (task.spec.queue, "1 of its tasks are queued, and nothing starts or runs")
    ]


def test_events_go_on_when_yarn_is_back(service: str, hadoop: Hadoop, caplog: pytest.LogCaptureFixture) -> None:
    with InfoClient(service) as client, client.events(["job"]) as stream:
        hadoop.wait_for_lists(2)
        hadoop.away = True
        hadoop.wait_for_lists(hadoop.lists + 2)
        hadoop.app |= {"state": "KILLED", "finalStatus": "KILLED"}
        hadoop.away = False
        assert _next(stream)["state"] == "KILLED"
    assert not caplog.records


def test_whatever_a_list_has_shown_is_followed_by_events(
    service: str, hadoop: Hadoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_sources, "LOOK_SECONDS", 600)
    with InfoClient(service) as client, client.events(["job"]) as stream:
        hadoop.wait_for_lists(1)  # the only look of the service's own
        _read_list(service)
        hadoop.app |= {"state": "FAILED", "finalStatus": "FAILED"}
        before = hadoop.lists
        while hadoop.lists == before:  # an answer that was asked for before may still be given again
            _read_list(service)
        assert _next(stream)["state"] == "FAILED"


def _read_list(service: str) -> None:
    with urllib.request.urlopen(f"{service}/api/v1/jobs", timeout=60) as answer:
        assert answer.status == 200


def _list(*rows: dict[str, Any]) -> list[Known]:
    return [parse_known(RUNNING | row) for row in rows]


def _told(*lists: Sequence[Known], places: Sequence[Place] = (PLACE, PLACE, PLACE), pause: float = 0.0) -> list[Any]:
    """What is told of lists that are read one after another, with a pause before each."""
    told: list[Any] = []
    now = [0.0]
    events = JobEvents(lambda: now[0])
    events.begin(told.append)
    for place, found in zip(places, lists, strict=False):
        now[0] += pause
        events.compare(place, found)
    return [(said["job_id"], said["kind"], said["state"], said["progress"]) for said in told]


def test_a_job_is_told_when_it_appears_and_not_when_it_only_goes_on() -> None:
    first: dict[str, Any] = {"id": "application_1_1"}
    second: dict[str, Any] = {"id": "application_1_2", "state": "ACCEPTED", "progress": 0.0}
    third: dict[str, Any] = {"id": "application_1_3"}
    told = _told(_list(first), _list(third, second, first), _list(third, second | {"progress": 50.0}, first))
    assert told == [("application_1_2", "command", "ACCEPTED", 0.0), ("application_1_3", "command", "RUNNING", 0.25)]


@pytest.mark.parametrize(("pause", "number"), [(KEPT_SECONDS - 1, 1), (KEPT_SECONDS + 1, 0)])
def test_what_changed_in_a_long_pause_is_not_told(pause: float, number: int) -> None:
    assert len(_told(_list({}), _list({"state": "FINISHED"}), pause=pause)) == number


def test_the_jobs_of_another_cluster_are_no_news() -> None:
    assert _told(_list({}), _list({"id": "application_2_1"}), places=(PLACE, OTHER)) == []


def test_a_cluster_that_is_away_for_long_is_no_pause_while_somebody_watches() -> None:
    told: list[Any] = []
    now = [0.0]
    events = JobEvents(lambda: now[0])
    events.compare(PLACE, _list({}))
    for _ in range(4):
        now[0] += KEPT_SECONDS / 2
        events.begin(told.append)
    events.compare(PLACE, _list({"state": "FINISHED"}))
    assert [said["state"] for said in told] == ["FINISHED"]
