"""Whose eyes the board looks with where Hadoop has Kerberos: the service answers real calls, Hadoop is played."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from infosvc.alerts import outside
from infosvc.data import event_sources
from infosvc.http.server import Server
from infosvc.settings import Settings
from infosvc.wire.alerts.alert_client import AlertClient
from infosvc.wire.client import InfoClient
from infosvc.wire.records import Role
from jobs.dashboard import calls
from jobs.dashboard.sources.site import Place, Site
from nodewise.board import board_calls
from tests.jobs.decisions import decide
from tests.jobs.played import JOB, MASTER
from tests.jobs.played_secure import NO_PROXY, SecureHadoop
from tests.jobs.test_board_inference import ROW
from tests.jobs.test_pool_client import Place as PooledHadoop

ADMIN = "a-token-for-the-tests"
UNKNOWN = "application_1700000000000_0009"
OF_A_JOB = ("/jobs/{}", "/jobs/{}/logs", f"/jobs/{{}}/logs?container={MASTER}", "/jobs/{}/decision")


class Callers:
    """Callers of a service that shows /data to all; each shows its token, or the cookie of a session, as pages do."""

    def __init__(self, url: str) -> None:
        self.url = url
        with InfoClient(url, ADMIN) as admin:
            roles = {"alice": Role.USER, "bob": Role.USER, "svc": Role.USER, "reader": Role.READER}
            self.tokens = {name: admin.create_token(name, role)[1] for name, role in roles.items()}
        self.tokens["admin"] = ADMIN

    def ask(self, caller: str, path: str, by_cookie: bool = False, body: bytes | None = None) -> tuple[int, Any]:
        """The status, and what is answered or the sentence of the refusal; "" calls without a token.

        With a body it is a POST.
        """
        shown: dict[str, str] = {}
        if by_cookie:
            shown = {"Cookie": self._log_in(self.tokens[caller])}
        elif caller:
            shown = {"Authorization": f"Bearer {self.tokens[caller]}"}
        request = urllib.request.Request(f"{self.url}/api/v1{path}", body, shown)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read())
        except HTTPError as refused:
            return refused.code, json.loads(refused.read())["error"]["message"]

    def _log_in(self, token: str) -> str:
        body = json.dumps({"token": token}).encode()
        request = urllib.request.Request(f"{self.url}/api/v1/session", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return "; ".join(f"{one.key}={one.value}" for one in SimpleCookie(answer.headers["Set-Cookie"]).values())


@pytest.fixture
def secure(monkeypatch: pytest.MonkeyPatch) -> Iterator[SecureHadoop]:
    monkeypatch.setattr(event_sources, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(outside, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(calls, "LIST_SECONDS", 0.0)
    monkeypatch.setattr(calls, "SETTLED_SECONDS", 0.0)
    monkeypatch.setattr(calls, "LISTING_WAIT_SECONDS", 60.0)  # 3 s may be too little for a busy machine
    made = SecureHadoop()
    yield made
    made.close()


@pytest.fixture
def place(secure: SecureHadoop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """place(HAS_KERBEROS): where the service finds Hadoop."""
    http = f"http://{secure.address}"
    found = Place(tmp_path, http, http, "root")
    return lambda kerberos: monkeypatch.setattr(Site, "place", lambda _: replace(found, has_kerberos=kerberos))


@pytest.fixture
def callers(place: Callable[[bool], None], tmp_path: Path) -> Iterator[Callers]:
    place(True)
    settings = Settings(database=f"sqlite:///{tmp_path}/infosvc.db", token=ADMIN)
    server = Server(settings, "127.0.0.1", 0, others=[board_calls(tmp_path, ["/data"])])
    thread = threading.Thread(target=server.run)
    thread.start()
    yield Callers(server.url)
    server.stop()
    thread.join()


def test_a_pool_looks_at_pictures_of_its_owner_alone(
    callers: Callers, secure: SecureHadoop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = PooledHadoop(secure, tmp_path, monkeypatch, owner="alice")
    pool.master.answers.append({"row": ROW})
    try:
        assert callers.ask("alice", "/pools/photos/infer", body=b"x")[1]["node_name"] == "alpha"
        assert callers.ask("bob", "/pools/photos/infer", body=b"x") == (
            404,
            "there is no pool photos: bob has none: `nodewise pool up photos --engine ENGINE` starts it",
        )
        assert callers.ask("reader", "/pools/photos/infer", body=b"x")[0] == 403
        assert len(pool.master.heard) == 1
    finally:
        pool.close()


def test_a_pool_is_listed_shown_and_used_by_its_owner_alone_and_admins_see_that_it_is_there(
    callers: Callers, secure: SecureHadoop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.dashboard.pools.SHOW_SECONDS", 60.0)  # 5 s may be too little for a busy machine
    pool = PooledHadoop(secure, tmp_path, monkeypatch, owner="alice")
    body = json.dumps({"input": "/data", "output": "/out", "capability": "weight"}).encode()
    pool.master.answers += [{"jobs": []}, {"job_id": "pool_1700000000000_0001_1", "notes": []}]
    try:
        listed = {name: callers.ask(name, "/pools")[1]["pools"] for name in ("alice", "bob", "admin")}
        assert {name: [one["own"] for one in found] for name, found in listed.items()} == {
            "alice": [True],
            "bob": [],
            "admin": [False],
        }
        assert callers.ask("alice", "/pools/photos")[1]["jobs"] == []
        for name in ("bob", "admin"):
            for sent in (None, body):
                status, said = callers.ask(name, "/pools/photos/jobs" if sent else "/pools/photos", body=sent)
                assert (status, said.partition(":")[0]) == (404, "there is no pool photos"), name
        for name in ("", "reader"):
            assert callers.ask(name, "/pools")[0] == 403
            assert callers.ask(name, "/pools/photos")[0] == 403
        assert callers.ask("reader", "/pools/photos/jobs", body=body)[0] == 403
        assert len(pool.master.heard) == 1, "by nobody else's call"
        status, given = callers.ask("alice", "/pools/photos/jobs", body=body)
        assert (status, given["job_id"]) == (201, "pool_1700000000000_0001_1")
        with InfoClient(callers.url, ADMIN) as admin:
            lines = [one for one in admin.audit() if one.call == "POST /api/v1/pools/photos/jobs"]
        assert [one.who.split()[0] for one in lines if one.status == 201] == ["alice"]
    finally:
        pool.close()


@pytest.mark.parametrize("by_cookie", [False, True], ids=["token", "session"])
def test_a_directory_is_seen_by_whom_hdfs_shows_it_to(callers: Callers, by_cookie: bool) -> None:
    path = "/path?path=/user/alice/pictures"

    assert callers.ask("bob", path, by_cookie)[0] == 403  # before her listing is kept, and after
    assert callers.ask("alice", path, by_cookie)[1]["files"] == 1
    status, said = callers.ask("bob", path, by_cookie)
    assert status == 403
    assert said.startswith("HDFS refused /user/alice/pictures to bob: Permission denied: user=bob")


@pytest.mark.parametrize("by_cookie", [False, True], ids=["token", "session"])
def test_a_job_its_logs_and_its_decision_are_seen_by_its_user(callers: Callers, by_cookie: bool) -> None:
    listed = {name: callers.ask(name, "/jobs", by_cookie)[1]["jobs"] for name in ("alice", "bob")}
    assert [len(listed[name]) for name in ("alice", "bob")] == [1, 0]
    for call in OF_A_JOB:
        assert callers.ask("alice", call.format(JOB), by_cookie)[0] == 200, call
        status, said = callers.ask("bob", call.format(JOB), by_cookie)
        assert (status, callers.ask("bob", call.format(UNKNOWN), by_cookie)) == (404, (404, said.replace(JOB, UNKNOWN)))


def test_what_a_job_tags_as_its_output_is_read_as_its_user_alone(callers: Callers, secure: SecureHadoop) -> None:
    secure.app |= {"user": "bob", "state": "FINISHED", "finalStatus": "SUCCEEDED"}
    for output in ("/user/alice/out", "/data/../user/alice/out"):
        secure.stored[f"{output}/decision.json"] = decide().to_bytes()
        secure.app["applicationTags"] = f"output={output}"
        secure.seen_by.clear()
        callers.ask("bob", f"/jobs/{JOB}/decision")
        assert set(secure.seen_by) == {"bob"}, output


def test_who_is_no_user_of_hadoop_sees_what_is_open_to_all(callers: Callers) -> None:
    for name in ("", "reader"):
        status, said = callers.ask(name, "/path?path=/user/alice/pictures")
        assert status == 403
        assert said.startswith("/user/alice/pictures is not open to callers who are no users of Hadoop: show a token")
        for call in ("/jobs", *(one.format(JOB) for one in OF_A_JOB)):
            status, said = callers.ask(name, call)
            assert status == 403, call
            assert said.startswith("jobs are shown to their users, as Hadoop has Kerberos: show a token"), call
        assert callers.ask(name, "/path?path=/data")[1]["files"] == 6
        assert callers.ask(name, "/path?path=/database")[0] == 403


def test_an_admin_sees_as_the_service_and_refusals_name_it(callers: Callers) -> None:
    assert [job["job_id"] for job in callers.ask("admin", "/jobs")[1]["jobs"]] == [JOB]
    assert callers.ask("admin", f"/jobs/{JOB}")[0] == 200
    assert "refused /user/alice to this service's user: " in callers.ask("admin", "/path?path=/user/alice")[1]


def test_a_service_that_is_no_proxy_user_shows_what_is_open_to_all(callers: Callers, secure: SecureHadoop) -> None:
    secure.may_ask.clear()
    status, said = callers.ask("alice", "/path?path=/user/alice/pictures")
    assert status == 403
    assert f"cannot be seen as alice, for Hadoop says: {NO_PROXY.format('alice')}: make it a proxy user" in said
    assert callers.ask("alice", "/path?path=/data")[1]["files"] == 6
    assert callers.ask("alice", f"/jobs/{JOB}")[0] == 200
    assert callers.ask("alice", f"/jobs/{JOB}/decision")[0] == 403
    secure.stored["/user/svc/own.jpg"] = b"its own"
    assert callers.ask("svc", "/path?path=/user/svc")[1]["files"] == 1


def test_events_of_jobs_and_alerts_on_them_are_told_to_their_user(callers: Callers, secure: SecureHadoop) -> None:
    clients = {name: InfoClient(callers.url, callers.tokens[name]) for name in ("alice", "bob", "reader", "admin")}
    with clients["alice"].events(["job"]) as hers, clients["bob"].events(["job"]) as his:
        secure.wait_for_lists(secure.lists + 3)  # by who tells those two: nobody else reads it while there is no alert
        secure.app |= {"state": "FINISHED", "finalStatus": "FAILED"}
        assert (said := dict(next(hers).data))["owner"] == "alice"
        secure.app |= {"user": "bob", "state": "RUNNING", "finalStatus": "UNDEFINED"}
        assert next(his).data["state"] == "RUNNING", "the first that he is told is his own"
    assert said["final"] == "FAILED"
    alert_id = AlertClient(clients["admin"]).add("job failed").alert_id  # when the list shows no failed job any more
    ended = {"state": "FINISHED", "finalStatus": "FAILED", "finishedTime": int(1000 * time.time()) + 1000}
    secure.app |= ended | {"user": "alice"}
    deadline = time.monotonic() + 60
    while not AlertClient(clients["admin"]).find(alert_id).on:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    on = {name: len(AlertClient(client).find(alert_id).on) for name, client in clients.items()}
    assert on == {"alice": 1, "bob": 0, "reader": 0, "admin": 1}


def test_without_kerberos_all_is_seen_as_the_service(
    callers: Callers, secure: SecureHadoop, place: Callable[[bool], None]
) -> None:
    place(False)
    assert "refused /user/alice to root: " in callers.ask("bob", "/path?path=/user/alice")[1]
    assert [job["user"] for job in callers.ask("", "/jobs")[1]["jobs"]] == ["alice"]
    assert callers.ask("bob", f"/jobs/{JOB}")[0] == 200
    assert set(secure.seen_by) == {"svc"}
