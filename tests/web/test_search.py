"""The search in the header of all pages: what it finds, and that it needs no mouse."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from infosvc.wire.task_spec import TaskSpec
from tests.infosvc.conftest import TOKEN
from tests.web.browser import Tabs, accessible
from tests.web.conftest import Known


def field(page: Page) -> Locator:
    return page.get_by_role("combobox", name="Search everything")


def options(page: Page) -> Locator:
    return page.get_by_role("listbox", name="Found").get_by_role("option")


def test_a_slash_goes_to_it_and_the_keys_choose(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/overview", TOKEN)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.keyboard.press("/")
    expect(field(page)).to_be_focused()
    expect(field(page)).to_have_value("")
    page.keyboard.type("n")
    expect(options(page).first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(field(page)).to_have_attribute("aria-expanded", "false")
    field(page).fill("")
    page.keyboard.type("n2")
    expect(options(page).first).to_have_text(re.compile("^n2 node "))
    accessible(page)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Node n2")
    expect(options(page)).to_have_count(0)


def test_what_is_meant_exactly_comes_first_and_the_arrows_go_on(tabs: Tabs, known: Known) -> None:
    known.client.submit_task(TaskSpec(("a",), name="load test"))
    page = tabs.open(known.url, "#/overview", TOKEN)
    field(page).fill("load")
    kinds = [re.compile(kind) for kind in ("data name", "task task_[0-9a-f]{16}, queued")]
    for kind in kinds:
        expect(options(page).filter(has_text=kind).first).to_be_visible()
    names = options(page).all_inner_texts()
    place = next(at for at, name in enumerate(names) if "load test" in name)
    for _ in range(place):
        page.keyboard.press("ArrowDown")
    expect(options(page).nth(place)).to_have_attribute("aria-selected", "true")
    expect(field(page)).to_have_attribute("aria-activedescendant", f"search-{place}")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("load test")


def test_a_path_of_hdfs_is_opened_as_it_is_typed(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/overview", TOKEN)
    field(page).fill("/data/images")
    expect(options(page).first).to_have_text("/data/images path")
    options(page).first.click()
    expect(page).to_have_url(re.compile("#/path[?]path=%2Fdata%2Fimages$"))
    expect(page.locator("main #path")).to_have_value("/data/images")


def test_nothing_found_is_said_and_tasks_are_for_those_who_may_see_them(tabs: Tabs, known: Known) -> None:
    known.client.submit_task(TaskSpec(("a",), name="secret"))
    page = tabs.open(known.url, "#/overview")
    field(page).fill("secret")
    expect(options(page)).to_have_text(["Nothing has secret in its name. A path of HDFS begins with /."])
    expect(page.locator("#live")).to_have_text(re.compile("Nothing has secret"))
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/overview"))


def test_who_types_a_slash_elsewhere_gets_a_slash(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/path")
    place = page.locator("main input").first
    place.click()
    page.keyboard.type("/data")
    expect(place).to_have_value("/data")


def test_the_key_can_be_switched_off_and_stays_so(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/overview")
    key = page.get_by_role("button", name="Key / goes to the search")
    expect(key).to_have_attribute("aria-pressed", "true")
    key.click()
    expect(key).to_have_attribute("aria-pressed", "false")
    tabs.reload(page)
    expect(key).to_have_attribute("aria-pressed", "false")
    accessible(page)
    page.keyboard.press("/")
    expect(field(page)).not_to_be_focused()
    key.click()
    page.keyboard.press("/")
    expect(field(page)).to_be_focused()
