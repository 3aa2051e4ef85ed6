"""The header of all pages on a telephone: it is low, and every link in it can be reached."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from infosvc.wire.records import Role
from tests.infosvc.conftest import TOKEN
from tests.web.browser import Tabs, accessible, focused, go, press_until
from tests.web.conftest import Known

PAGES = ("Overview", "Cluster", "Data names", "HDFS path", "Tasks", "Jobs", "Pools", "Queue")
MOST_HIGH = 120

IS_IN_SIGHT = """async link => {
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    const line = link.closest("nav").getBoundingClientRect();
    const { left, right } = link.getBoundingClientRect();
    return left >= line.left - 1 && right <= line.right + 1;
}"""


def narrow(tabs: Tabs, known: Known, token: str | None) -> Page:
    """The first page on a telephone."""
    page = tabs.open(known.url, "#/overview", token)
    page.set_viewport_size({"width": 360, "height": 700})
    return page


def height(page: Page) -> float:
    """How high the header is."""
    box = page.get_by_role("banner").bounding_box()
    assert box is not None
    return box["height"]


def links(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Pages").get_by_role("link")


@pytest.mark.parametrize("who", ["admin", "nobody", "a long name"])
def test_the_header_is_low_and_has_all_that_it_has_elsewhere(tabs: Tabs, known: Known, who: str) -> None:
    tokens = {"admin": TOKEN, "nobody": None, "a long name": known.client.create_token("n" * 60, Role.READER)[1]}
    page = narrow(tabs, known, tokens[who])

    assert height(page) <= MOST_HIGH
    expect(links(page)).to_have_text(PAGES)
    for part in (page.get_by_role("combobox", name="Search everything"), page.locator("#session button")):
        box = part.bounding_box()
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 360 and box["width"] > 60
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    accessible(page)


def test_every_link_comes_into_sight_as_the_keyboard_reaches_it(tabs: Tabs, known: Known) -> None:
    page = narrow(tabs, known, TOKEN)
    for name in PAGES:
        press_until(page, name)
        assert focused(page) == name
        assert links(page).filter(has_text=name).evaluate(IS_IN_SIGHT), name


def test_the_link_of_the_page_that_is_open_is_in_sight(tabs: Tabs, known: Known) -> None:
    page = narrow(tabs, known, TOKEN)
    for name in ("Queue", "Overview"):
        go(page, f"#/{name.lower()}", name)
        expect(links(page).filter(has_text=name)).to_have_attribute("aria-current", "page")
        assert links(page).filter(has_text=name).evaluate(IS_IN_SIGHT), name


def test_that_the_connection_is_away_makes_it_no_higher(tabs: Tabs, known: Known) -> None:
    page = narrow(tabs, known, TOKEN)
    page.evaluate("""() => {
        const place = document.getElementById("connection");
        place.textContent = "Connection away";
        place.className = "away";
    }""")

    assert height(page) <= MOST_HIGH
