"""What holds for every page: anybody can use it, in light and dark; it obeys its own policy; and how it looks."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from infosvc.records import Report
from tests.infosvc.conftest import TOKEN
from tests.web.browser import Tabs
from tests.web.conftest import Known, ran
from tests.web.invented import ENDED, NODES, RUNNING

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")

SHOTS = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
ASKED = "NODEWISE_SCREENSHOTS"  # set it to anything, and docs/screenshots is made anew

PATH = "#/path?path=%2Fdata%2Fimages&capability=perf_cpu"
PLACES = {
    "cluster": ("#/cluster", "2 fresh"),
    "node": ("#/node/n2", "ten failures in a row"),
    "data": ("#/data", "perf_cpu"),
    "data_name": ("#/data/cpu_free_ratio", "0.9312"),
    "path": (PATH, "algorithm1"),
    "jobs": ("#/jobs", RUNNING),
    "running": (f"#/job/{RUNNING}", "12 of 40"),
    "ended": (f"#/job/{ENDED}", "perf_history"),
    "nowhere": ("#/nowhere", "here is no page"),
}
"""Address of each page, and what stands on it once it is complete."""


def _register(page: Page) -> None:
    page.goto("/#/data")
    page.get_by_role("button", name="Register a name").click()
    expect(page.get_by_role("form", name="Register a data name")).to_be_visible()


def _edit(page: Page) -> None:
    page.goto("/#/data/load_1m")
    page.get_by_role("button", name="Edit").click()
    expect(page.get_by_role("form", name="Edit load_1m")).to_be_visible()


def _delete(page: Page) -> None:
    page.goto("/#/data/load_1m")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("button", name="Keep it")).to_be_visible()


def _end(page: Page) -> None:
    page.goto(f"/#/job/{RUNNING}")
    page.get_by_role("button", name="End this job").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def _opened(page: Page) -> None:
    page.goto(f"/#/job/{ENDED}")
    for summary in ("Why each node got its share", "Logs", "The same as a table"):
        page.locator("summary").filter(has_text=summary).click()
    expect(page.get_by_role("table", name="Shares by the decision")).to_be_visible()


OPENED: dict[str, Callable[[Page], None]] = {
    "register": _register,
    "edit": _edit,
    "delete": _delete,
    "end": _end,
    "opened": _opened,
}
"""What only shows after something was pressed."""


def accessible(page: Page) -> None:
    """No violation of any of axe's rules."""
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


@pytest.fixture
def judged(known: Known) -> Known:
    """With a capability for each node, so that the page of a path has plans."""
    for number, name in enumerate(NODES, start=1):
        known.client.put_value("perf_cpu", name, number)
    return known


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", PLACES)
def test_every_page_is_accessible_to_everybody(tabs: Tabs, judged: Known, name: str, scheme: Scheme) -> None:
    place, complete = PLACES[name]
    page = tabs.open(judged.url, place, TOKEN, scheme)
    expect(page.locator("main")).to_contain_text(complete)

    accessible(page)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", OPENED)
def test_so_is_what_opens_on_it(tabs: Tabs, judged: Known, name: str, scheme: Scheme) -> None:
    page = tabs.open(judged.url, token=TOKEN, scheme=scheme)
    OPENED[name](page)

    accessible(page)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_so_is_the_dialog_to_log_in_also_after_a_refusal(tabs: Tabs, known: Known, scheme: Scheme) -> None:
    page = tabs.open(known.url, scheme=scheme)
    tabs.expect(page, r"status of 401")
    page.get_by_role("button", name="Log in").click()
    dialog = page.get_by_role("dialog", name="Log in")
    dialog.get_by_label("Access token").fill("nw_admin_a-wrong-guess-of-a-token")
    dialog.get_by_role("button", name="Log in").click()
    expect(dialog.get_by_role("alert")).to_be_visible()

    accessible(page)


def test_light_and_dark_differ_and_the_page_says_that_it_has_both(tabs: Tabs, known: Known) -> None:
    background = "() => getComputedStyle(document.body).backgroundColor"
    light, dark = (tabs.open(known.url, scheme=scheme).evaluate(background) for scheme in SCHEMES)

    assert light != dark


@pytest.mark.parametrize("name", PLACES)
def test_a_narrow_window_scrolls_no_page_sideways(tabs: Tabs, judged: Known, name: str) -> None:
    place, complete = PLACES[name]
    page = tabs.open(judged.url, place, TOKEN)
    page.set_viewport_size({"width": 360, "height": 700})
    expect(page.locator("main")).to_contain_text(complete)

    assert page.evaluate("() => document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_a_script_that_gets_onto_the_page_all_the_same_does_not_run(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url)
    tabs.expect(page, r"Content Security Policy")
    page.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "window.came = true";
        document.body.append(script);
        document.body.setAttribute("onclick", "window.came = true");
        document.body.click();
    }""")

    assert page.evaluate("() => window.came") is None


def test_the_policy_allows_nothing_but_the_service_itself(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url)
    answer = page.context.request.get("/")
    policy = answer.headers["content-security-policy"]

    assert answer.ok
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and "http:" not in policy and "*" not in policy


@pytest.fixture
def crowd(judged: Known) -> Known:
    """Some dozens of nodes, whose values differ."""
    for number in range(60):
        name = f"worker{number:02}"
        judged.client.put_node(name, f"192.0.2.{number}:8410")
        value = f"{(number * 37 % 60) / 60:.3f}"
        judged.client.report(name, Report("b", 1, "1.0", (ran("cpu_free_ratio", value),)))
    for sequence in range(2, 30):
        value = f"{0.5 + (sequence * 7 % 11) / 30:.3f}"
        judged.client.report("n2", Report("b", sequence, "1.0", (ran("cpu_free_ratio", value),)))
    return judged


@pytest.mark.skipif(ASKED not in os.environ, reason=f"pictures are taken when {ASKED} is set")
def test_pictures_for_the_documentation(tabs: Tabs, crowd: Known) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    page = tabs.open(crowd.url, token=TOKEN)
    for name, place, complete in (
        ("cluster", "#/cluster", "62 fresh"),
        ("node", "#/node/n2", "ten failures in a row"),
        ("data", "#/data/cpu_free_ratio", "worker59"),
        ("path", PATH, "algorithm1"),
        ("job", f"#/job/{ENDED}", "perf_history"),
    ):
        page.goto(f"/{place}")
        expect(page.locator("main")).to_contain_text(complete)
        expect(page.get_by_text(re.compile("Loading|Asking YARN"))).to_have_count(0)
        page.screenshot(path=SHOTS / f"{name}.png", animations="disabled")
        assert (SHOTS / f"{name}.png").stat().st_size > 0
