"""The pages before users of a Hadoop with Kerberos, which is played: nobody sees there what another one has."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from infosvc.http.server import Server
from infosvc.settings import Settings
from infosvc.wire.client import InfoClient
from infosvc.wire.records import Role
from jobs.dashboard.sources.site import Place, Site
from nodewise.board import board_calls
from tests.infosvc.conftest import PATIENCE_SECONDS, TOKEN
from tests.jobs.played import JOB
from tests.jobs.played_secure import SecureHadoop
from tests.web.browser import Tabs

FOLDER = "/user/alice/pictures"


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InfoClient]:
    """An admin's client of a service that is a proxy user there."""
    hadoop = SecureHadoop()
    http = f"http://{hadoop.address}"
    monkeypatch.setattr(Site, "place", lambda self: Place(self.home, http, http, "root", has_kerberos=True))
    settings = Settings(f"sqlite:///{tmp_path}/infosvc.db", TOKEN, patience=PATIENCE_SECONDS)
    server = Server(settings, "127.0.0.1", 0, others=[board_calls(tmp_path)])
    thread = threading.Thread(target=server.run)
    thread.start()
    yield InfoClient(server.url, TOKEN, PATIENCE_SECONDS)
    server.stop()
    thread.join()
    hadoop.close()


def test_pages_show_a_user_what_is_his_and_name_him_where_he_is_refused(tabs: Tabs, service: InfoClient) -> None:
    alice, bob = (service.create_token(name, Role.USER)[1] for name in ("alice", "bob"))
    path = f"#/path?path={quote(FOLDER, safe='')}"

    hers = tabs.open(service.url, token=alice)  # first a page that asks for nothing of Hadoop's before she is known
    hers.goto(f"/{path}")
    expect(hers.get_by_text(f"{FOLDER}: 1 file, 1 block")).to_be_visible()
    hers.goto("/#/jobs")
    expect(hers.get_by_role("link", name=JOB)).to_be_visible()

    his = tabs.open(service.url, token=bob)
    tabs.expect(his, r"status of 403")
    tabs.expect(his, r"status of 404")
    his.goto("/#/jobs")
    expect(his.get_by_text("YARN knows no job of nodewise.")).to_be_visible()
    his.goto(f"/{path}")
    expect(his.get_by_role("alert").filter(has_text=f"HDFS refused {FOLDER} to bob")).to_be_visible()
    his.goto(f"/#/job/{JOB}")
    expect(his.get_by_role("alert").filter(has_text=f"{JOB} is not a job of bob")).to_be_visible()
