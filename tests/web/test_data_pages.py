"""#/data and #/data/NAME: which names there are, how each is made, and what it is on every node."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from infosvc.wire.records import Kind, Producer, Report
from tests.web.browser import Tabs, Unreloaded, go
from tests.web.conftest import Known, ran


def row(page: Page, table: str, name: str) -> Locator:
    """The row of one thing."""
    head = page.get_by_role("rowheader").get_by_role("link", name=name, exact=True)
    return page.get_by_role("table", name=table).get_by_role("row").filter(has=head)


def names(page: Page) -> Locator:
    """The names that are listed."""
    return page.get_by_role("table", name="Registered data names").get_by_role("rowheader")


def test_every_name_is_listed_with_how_it_is_made(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/data")

    expect(page.get_by_role("heading", level=1)).to_have_text("Data names")
    expect(names(page).get_by_role("link")).to_have_text(["cpu_free_ratio", "gpu_usage", "load_1m", "perf_cpu", "rack"])
    perf = row(page, "Registered data names", "perf_cpu")
    expect(perf).to_contain_text("processor")
    expect(perf.get_by_role("link", name="cpu_free_ratio")).to_be_visible()
    load = row(page, "Registered data names", "load_1m")
    expect(load).to_contain_text("processes")
    expect(load).to_contain_text("Load.")
    expect(row(page, "Registered data names", "cpu_free_ratio").get_by_role("cell").nth(6)).to_have_text("2")


def test_names_are_filtered(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/data")
    page.get_by_label("Show names with").fill("RATIO collector")

    expect(names(page)).to_have_text(["cpu_free_ratio"])
    expect(page.get_by_text("1 of 5 names")).to_be_visible()


def test_a_picture_shows_what_is_made_from_what(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/data")

    section = page.locator("section").filter(has=page.get_by_role("heading", name="Who makes what from what"))
    expect(section.locator("svg").first).to_be_visible()
    expect(section).to_contain_text("perf_cpu")


def test_one_name_shows_its_value_on_every_node_and_follows(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/data/cpu_free_ratio")
    title = "cpu_free_ratio on each node"
    expect(row(page, title, "n1")).to_contain_text("25 %")
    expect(row(page, title, "n2")).to_contain_text("93.1 %")
    expect(page.get_by_role("img", name=re.compile("cpu_free_ratio over nodes"))).to_be_visible()
    with Unreloaded(page):
        known.client.report("n1", Report("b", 2, "1.0", (ran("cpu_free_ratio", "0.5"),)))
        expect(row(page, title, "n1")).to_contain_text("50 %")
        known.client.put_value("cpu_free_ratio", "n3", 0.125)
        expect(row(page, title, "n3")).to_contain_text("12.5 %")
        known.client.delete_value("cpu_free_ratio", "n3")
        expect(row(page, title, "n3")).to_have_count(0)


def test_one_name_shows_its_registration_and_what_it_goes_into(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/data/cpu_free_ratio")

    expect(page.locator("main")).to_contain_text("scripts/cpu_free_ratio.sh")
    page.locator("main").get_by_role("link", name="perf_cpu").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("perf_cpu")


def test_texts_are_counted_and_failures_tell_their_reason(tabs: Tabs, known: Known) -> None:
    known.client.put_value("rack", "n2", "r7")
    known.client.put_value("rack", "n3", "<i>r8</i>")
    page = tabs.open(known.url, "#/data/rack")
    texts = page.get_by_role("table", name="Texts, and how many nodes have each")
    expect(texts.get_by_role("row").filter(has_text="r7")).to_contain_text("2")
    expect(texts).to_contain_text("<i>r8</i>")
    go(page, "#/data/load_1m", "load_1m")

    expect(row(page, "load_1m on each node", "n2")).to_contain_text("no file <b>/proc/loadavg</b>")


def test_an_old_value_says_that_it_is_stale(tabs: Tabs, known: Known) -> None:
    known.client.put_producer(Producer("quick", "", 1.0, Kind.PROGRAM, ttl=1.0))
    known.client.put_value("quick", "n1", 1)
    page = tabs.open(known.url, "#/data/quick")

    expect(row(page, "quick on each node", "n1")).to_contain_text("stale")
    expect(page.get_by_text("1 of 1 value stale or failed")).to_be_visible()


def test_a_name_that_nobody_registered_is_one_sentence(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/data/load_2m")
    tabs.expect(page, r"status of 404")

    expect(page.get_by_role("alert").filter(has_text="load_2m")).to_be_visible()
