"""Who may see and do what: log in, log out, and what a viewer is not shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from infosvc.wire.records import Kind, Producer
from tests.infosvc.conftest import TOKEN, serving
from tests.web.browser import Tabs, Unreloaded, focused, log_in, press_until
from tests.web.conftest import Known

PLACES = ("#/cluster", "#/node/n1", "#/data", "#/data/load_1m")
"""Where something is shown of what the service knows; those of jobs are tried in test_jobs_and_paths.py."""


def test_a_token_is_shown_once_and_becomes_a_cookie_that_no_script_reads(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url)
    with Unreloaded(page):
        log_in(page, TOKEN)
    (cookie,) = page.context.cookies()

    expect(page.get_by_role("banner")).to_contain_text("first admin, admin")
    assert (cookie.get("httpOnly"), cookie.get("sameSite"), cookie.get("path")) == (True, "Strict", "/")
    assert TOKEN not in str(cookie.get("value"))
    assert page.evaluate("() => document.cookie + JSON.stringify([localStorage, sessionStorage])") == "[{},{}]"


def test_the_session_outlives_the_page(tabs: Tabs, admin: Page) -> None:
    tabs.reload(admin)

    expect(admin.get_by_role("button", name="Log out")).to_be_visible()


def test_a_wrong_token_is_refused_in_the_dialog_and_may_be_mended(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url)
    tabs.expect(page, r"status of 401")
    page.get_by_role("button", name="Log in").click()
    dialog = page.get_by_role("dialog", name="Log in")
    dialog.get_by_label("Access token").fill("nw_admin_a-wrong-guess-of-a-token")
    dialog.get_by_role("button", name="Log in").click()

    expect(dialog.get_by_role("alert")).not_to_be_empty()
    expect(page.get_by_role("banner").get_by_role("button", name="Log out")).to_have_count(0)
    dialog.get_by_label("Access token").fill(TOKEN)
    dialog.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("button", name="Log out")).to_be_visible()


def test_the_dialog_is_worked_by_keyboard_and_gives_the_focus_back(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    press_until(page, "Log in")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert "Access token" in focused(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert focused(page) == "Log in"

    page.keyboard.press("Enter")
    page.keyboard.type(TOKEN)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Log out")).to_be_visible()


def test_a_tab_learns_from_a_refusal_that_another_one_has_logged_in(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/node/n1", TOKEN)
    tabs.expect(page, r"status of 403")
    stop = page.get_by_role("button", name="Stop: load_1m")
    expect(stop).to_be_visible()
    assert page.context.request.post("/api/v1/session", data={"token": TOKEN}).ok
    with page.expect_response("**/api/v1/session"):
        stop.click()
    expect(page.get_by_role("table", name="Slots of this node").get_by_role("alert")).to_contain_text("X-CSRF-Token")
    stop.click()

    expect(page.get_by_role("button", name="Start: load_1m")).to_be_visible()


def test_after_log_out_nothing_can_be_changed(admin: Page) -> None:
    admin.goto("/#/data")
    expect(admin.get_by_role("button", name="Register a name")).to_be_visible()
    admin.get_by_role("button", name="Log out").click()

    expect(admin.get_by_role("button", name="Log in")).to_be_visible()
    expect(admin.get_by_role("button", name="Register a name")).to_be_hidden()
    assert admin.context.cookies() == []


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("who", ["viewer", "nobody"])
def test_who_may_only_read_is_shown_no_button_to_change_anything(
    tabs: Tabs, known: Known, place: str, who: str
) -> None:
    page = tabs.open(known.url, place, known.viewer if who == "viewer" else None)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator("main")).to_contain_text(re.compile("load_1m|n1"))

    expect(page.locator("[data-role]:visible")).to_have_count(0)
    changing = re.compile("^(Start|Stop|Register|Edit|Delete|Lift|Kill|Set)", re.IGNORECASE)
    expect(page.get_by_role("button", name=changing)).to_have_count(0)


@pytest.mark.parametrize("place", PLACES[1:])
def test_an_admin_is_shown_what_may_be_changed(tabs: Tabs, known: Known, place: str) -> None:
    page = tabs.open(known.url, place, TOKEN)

    expect(page.locator("[data-role]:visible").first).to_be_visible()


def test_where_reading_takes_a_token_the_page_asks_for_it_first(tabs: Tabs, tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path / 'infosvc.db'}", open_reading=False) as service:
        service.client.put_producer(Producer("rack", "", 600.0, Kind.PROGRAM))
        service.client.put_value("rack", "n1", "7")
        page = tabs.open(service.url)
        tabs.expect(page, r"status of 401")
        dialog = page.get_by_role("dialog", name="Log in")
        expect(dialog).to_contain_text("only to those with a token")
        expect(page.locator("main")).not_to_contain_text("rack")
        dialog.get_by_label("Access token").fill(TOKEN)
        dialog.get_by_role("button", name="Log in").click()

        expect(page.get_by_role("list", name="Nodes")).to_contain_text("n1")
