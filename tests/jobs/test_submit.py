"""What a job takes with it when it is submitted, what is refused before, and what of earlier jobs is swept away."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hadoop.client.filesystem import Entry
from hadoop.client.yarn import Application
from infosvc.access.tokens import new_text
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Unauthorized, Unreachable
from infosvc.wire.records import Role
from jobs.application.job_record import program_tags
from jobs.application.submit import (
    MOST_ATTEMPTS,
    InfoAccess,
    JobToken,
    Order,
    check_attempts,
    job_token,
    master_memory_mb,
    role_of,
)
from jobs.division import decision_store, kept_work, speed_history
from jobs.division.decision_store import UNKNOWN_SECONDS, leftovers
from jobs.errors import JobError
from tests.jobs.following import RUNNING, SUCCEEDED


def prepare(client: InfoClient) -> None:
    """As a job that keeps the speeds of engine e does."""
    speed_history.prepare(client, "e.alexnet", 32)


ORDER = Order("classify", "n", {}, access=InfoAccess("u", "a-token-of-mine"), prepare=prepare)
AWAY = "http://127.0.0.1:1"


def given(client: InfoClient, order: Order) -> tuple[JobToken, list[str]]:
    """The token of a job, and what its owner hears."""
    said: list[str] = []
    return job_token(client, order, "application_1_0001", said.append), said


def of_role(client: InfoClient, role: Role) -> tuple[InfoClient, Order]:
    """Who calls with a token of this role."""
    node_name = "worker1" if role is Role.AGENT else None
    text = client.create_token("someone", role, node_name)[1]
    return InfoClient(client.url, text), replace(ORDER, access=InfoAccess("u", text))


def test_an_admin_s_job_has_a_token_of_its_own_that_can_be_taken_back(client: InfoClient) -> None:
    client.put_node("worker1", "127.0.0.1:9")
    token, said = given(client, ORDER)
    (made,) = client.tokens()

    assert (made.name, made.role, said) == ("job application_1_0001", Role.PROCESSOR, [])
    speed_history.record(InfoClient(client.url, token.text), "e.alexnet", 32, {"worker1": 2.0})
    token.revoke()
    with pytest.raises(Unauthorized):
        speed_history.record(InfoClient(client.url, token.text), "e.alexnet", 32, {"worker1": 3.0})


@pytest.mark.parametrize("role", [Role.PROCESSOR, Role.SCHEDULER])
def test_who_may_write_values_and_make_no_token_lends_the_own_one(client: InfoClient, role: Role) -> None:
    speed_history.prepare(client, "e.alexnet", 32)
    asking, order = of_role(client, role)

    token, said = given(asking, order)

    assert (token.text, said) == (order.access.token, [])
    token.revoke()
    assert [made.revoked_at for made in client.tokens()] == [None], "it is not the job's to take back"


@pytest.mark.parametrize("role", [Role.READER, Role.AGENT])
def test_who_may_not_write_values_hears_that_speeds_are_not_kept(client: InfoClient, role: Role) -> None:
    token, said = given(*of_role(client, role))

    assert token.text is None
    assert len(said) == 1
    assert "speeds of this job will not be kept" in said[0]


def test_no_token_is_lent_while_nobody_can_say_what_it_may_do() -> None:
    for text in ("a-token-of-mine", new_text(Role.ADMIN), new_text(Role.PROCESSOR)):
        order = replace(ORDER, access=InfoAccess("u", text), needs_service=False)
        token, said = given(InfoClient(AWAY, text, retries=0), order)
        assert token.text is None
        assert len(said) == 1
        assert "speeds of this job will not be kept" in said[0]


@pytest.fixture
def gatekeeper() -> Iterator[str]:
    """The URL of something before the service that lets nobody in."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(403)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: object) -> None:
            """Tests need no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("text", ["a-token-of-mine", new_text(Role.ADMIN)], ids=["chosen", "admin"])
def test_a_token_that_may_be_an_admin_s_is_never_lent(gatekeeper: str, text: str) -> None:
    token, said = given(InfoClient(gatekeeper, text), replace(ORDER, access=InfoAccess("u", text)))

    assert token.text is None
    assert len(said) == 1
    assert "speeds of this job will not be kept" in said[0]


def test_without_a_fallback_the_service_has_to_answer() -> None:
    with pytest.raises(Unreachable):
        given(InfoClient(AWAY, "t", retries=0), ORDER)


def test_who_has_no_token_is_told_nothing_and_asked_nothing() -> None:
    assert given(InfoClient(AWAY, retries=0), replace(ORDER, access=InfoAccess("u"))) == (JobToken(None), [])


def test_a_token_s_text_tells_its_role() -> None:
    assert [role_of(new_text(role)) for role in Role] == list(Role)
    assert role_of("a-token-of-mine") is None


def site_file(folder: Path, most: str | None) -> Path:
    """A folder of site files that allows so many attempts."""
    told = f"<property><name>{MOST_ATTEMPTS}</name><value>{most}</value></property>" if most else ""
    (folder / "yarn-site.xml").write_text(f"<configuration>{told}</configuration>")
    return folder


@pytest.mark.parametrize(("written", "most"), [("4", 4), (None, 2), ("${env.MOST}", 2)])
def test_more_attempts_than_the_cluster_makes_are_refused_with_both_numbers(
    tmp_path: Path, written: str | None, most: int
) -> None:
    where = site_file(tmp_path, written)

    check_attempts(where, most)
    refused = rf"^{most + 1} attempts are more than the {most} .* --attempts {most} .*{MOST_ATTEMPTS}"
    with pytest.raises(JobError, match=refused):
        check_attempts(where, most + 1)


def test_without_site_file_the_cluster_makes_what_hadoop_makes_by_default(tmp_path: Path) -> None:
    check_attempts(tmp_path, 2)
    with pytest.raises(JobError, match="3 attempts are more than the 2"):
        check_attempts(tmp_path, 3)


def test_only_folders_of_jobs_that_have_ended_are_swept() -> None:
    now = 1e9
    young, old = now - UNKNOWN_SECONDS + 10, now - UNKNOWN_SECONDS - 10
    folders = [
        Entry(name, 0, since) for name, since in (("runs", old), ("ended", young), ("new", young), ("lost", old))
    ]

    def known(name: str, like: Application) -> Application:
        return replace(like, application_id=name)

    assert leftovers(folders, [known("runs", RUNNING), known("ended", SUCCEEDED)], now) == ["ended", "lost"]


def test_work_that_can_be_resumed_is_kept_for_a_while_and_the_newest_alone() -> None:
    now = 1e9
    marked = [Entry(f"job-{age}", 0, now - age) for age in range(kept_work.MOST_KEPT + 5)]
    old = Entry("old", 0, now - kept_work.KEPT_SECONDS - 1)

    assert kept_work.worth_keeping([old, *marked], now) == {one.name for one in marked[: kept_work.MOST_KEPT]}
    assert kept_work.worth_keeping([old], now) == set()


class Owned:
    """A folder of jobs in the place of HDFS, and a YARN that has forgotten all but those in `known`."""

    def __init__(self, *marked: str, others: Sequence[str] = (), known: Sequence[Application] = ()) -> None:
        self.filesystem, self.yarn = self, self
        self.names = [*marked, *others]
        self.marked = marked
        self.known = list(known)
        self.deleted: set[str] = set()

    def home(self) -> str:
        return "/user/me"

    def entries(self, folder: str) -> list[Entry]:
        return [Entry(name, 0, time.time() - 2 * UNKNOWN_SECONDS) for name in self.names]

    def applications(self) -> list[Application]:
        return self.known

    def exists(self, name: str) -> bool:
        return name.rpartition("/")[0].rpartition("/")[2] in self.marked

    def delete(self, name: str) -> None:
        self.deleted.add(name.rpartition("/")[2])


def test_the_sweep_leaves_work_that_can_be_resumed() -> None:
    owned: Any = Owned("application_1_0001", others=["application_1_0002", "decisions"])

    decision_store.sweep(owned)

    assert owned.deleted == {"application_1_0002"}


def test_the_sweep_takes_what_a_job_left_that_succeeded() -> None:
    known = [Application("application_1_0001", "", "FINISHED", "SUCCEEDED", 1.0, "", "n1", 1.0)]
    owned: Any = Owned("application_1_0001", known=known)

    decision_store.sweep(owned)

    assert owned.deleted == {"application_1_0001"}


def test_the_remedy_is_said_once() -> None:
    once = kept_work.with_remedy("the disk is full", "application_1_0001")

    assert once == "the disk is full; all its work is done, and `nodewise job resume application_1_0001` stores it"
    assert kept_work.with_remedy(once, "application_1_0001") == once


@pytest.mark.parametrize(("files", "mb"), [(0, 640), (40, 640), (2_000_000, 2640)])
def test_an_application_master_gets_memory_by_the_files_that_it_divides(files: int, mb: int) -> None:
    assert master_memory_mb(files) == mb


@pytest.mark.parametrize("name", ["", "Net", "a/b", "a b", "\N{ARABIC-INDIC DIGIT THREE}", "x" * 65, "net\n"])
def test_a_program_whose_name_yarn_would_not_keep_is_refused(name: str) -> None:
    with pytest.raises(JobError, match="is no name: give 1 to 64 small letters"):
        program_tags(name)
