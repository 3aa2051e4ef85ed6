"""The dialog to log in, where the service takes tickets: a real KDC, and a browser that may show it a ticket or not."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from hadoop.local.kerberos import programs
from hadoop.local.kerberos.realm import Realm
from tests.infosvc.conftest import Served, serving
from tests.kdc import running
from tests.ports import free_port
from tests.web.browser import Tabs, chromium

BUTTON = "Use my Kerberos ticket"


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    """A realm in which this process, and the browser that it starts, have a ticket of alice's."""
    folder, here = tmp_path_factory.mktemp("realm"), ("127.0.0.1",)
    made = Realm(folder, folder, f"127.0.0.1:{free_port()}", here, (), here, "me", ("alice",))
    made.prepare()
    with running(made), pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("KRB5_CONFIG", str(made.krb5_conf))
        monkeypatch.setenv("KRB5CCNAME", made.tickets("alice"))
        monkeypatch.setenv("KRB5RCACHEDIR", str(folder))
        kinit = programs.find("kinit")
        argv = [str(kinit), "-k", "-t", str(made.keytab("alice")), "alice"]
        subprocess.run(argv, check=True, env={**os.environ, **programs.libraries(kinit)})
        yield made


@pytest.fixture(params=[True, False], ids=["with a keytab", "without one"])
def served(request: pytest.FixtureRequest, realm: Realm, sqlite_url: str) -> Iterator[Served]:
    """A service that takes tickets, or takes none."""
    keytab = str(realm.folder / "keytabs" / "HTTP.keytab") if request.param else None
    with serving(sqlite_url, spnego_keytab=keytab) as service:
        yield service


@pytest.mark.parametrize("served", [True], indirect=True)
@pytest.mark.parametrize("trusting", [True, False])
def test_a_ticket_logs_in_where_the_browser_may_show_it(served: Served, trusting: bool) -> None:
    allowed = ["--auth-server-allowlist=127.0.0.1"] if trusting else ["--auth-server-allowlist=nowhere.example"]
    with chromium(*allowed) as browser:
        tabs = Tabs(browser)
        page = tabs.open(served.url)
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("dialog").get_by_role("button", name=BUTTON).click()
        if trusting:
            expect(page.locator("#session .who")).to_have_text("alice (by ticket), user")
        else:
            expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("wants a ticket of Kerberos")
            tabs.expect(page, r"status of 401")
        tabs.close()


@pytest.mark.parametrize("served", [False], indirect=True)
def test_without_a_keytab_there_is_no_such_button(served: Served, tabs: Tabs) -> None:
    page = tabs.open(served.url)
    page.get_by_role("button", name="Log in").click()
    dialog = page.get_by_role("dialog")

    expect(dialog.get_by_label("Access token")).to_be_visible()
    expect(dialog.get_by_role("button", name=BUTTON)).to_have_count(0)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of an SQLite file that is not there yet."""
    return f"sqlite:///{tmp_path / 'infosvc.db'}"
