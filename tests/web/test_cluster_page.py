"""#/cluster: every node at a glance, as it is now."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from infosvc.wire.records import Kind, Outcome, Producer, Report, Run
from tests.infosvc.conftest import Hands, serving
from tests.ports import free_port
from tests.web.browser import Tabs, Unreloaded, focused, go, press_until
from tests.web.conftest import Known, ran, tell

MANY = 1000


def nodes(page: Page) -> Locator:
    """The cells that are shown."""
    return page.get_by_role("list", name="Nodes").get_by_role("listitem")


def cell(page: Page, name: str) -> Locator:
    """The cell of one node."""
    return page.get_by_role("list", name="Nodes").get_by_role("link", name=re.compile(rf"^{re.escape(name)}\b"))


def choose(page: Page, label: str, value: str) -> None:
    page.get_by_label(label, exact=True).select_option(value)


def test_every_node_has_a_cell_with_its_value_and_unit(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url)

    expect(page.get_by_role("heading", level=1)).to_have_text("Cluster")
    expect(nodes(page)).to_have_count(3)
    expect(cell(page, "n1")).to_contain_text("25 %")
    expect(cell(page, "n2")).to_contain_text("93.1 %")
    expect(cell(page, "n3")).to_contain_text("no data")
    expect(page.get_by_text("3 nodes: 2 ready, 1 silent. Values: 2 fresh, 1 without data.")).to_be_visible()
    expect(page).to_have_title(re.compile("Cluster.*nodewise"))


def test_another_value_is_chosen_and_the_address_keeps_it(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url)
    choose(page, "Value", "load_1m")

    expect(cell(page, "n1")).to_contain_text("3.5 processes")
    expect(cell(page, "n2")).to_contain_text("failed")
    tabs.reload(page)
    expect(page.get_by_label("Value", exact=True)).to_have_value("load_1m")
    expect(cell(page, "n1")).to_contain_text("3.5 processes")


def test_what_is_reported_is_seen_without_loading_anew(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url)
    expect(cell(page, "n1")).to_contain_text("25 %")
    with Unreloaded(page):
        known.client.report("n1", Report("b", 2, "1.0", (ran("cpu_free_ratio", "0.5"),)))
        expect(cell(page, "n1")).to_contain_text("50 %")
        known.client.put_value("cpu_free_ratio", "n9", 0.125)
        expect(cell(page, "n9")).to_contain_text("12.5 %")
        known.client.report("n2", Report("b", 2, "1.0", (Run("cpu_free_ratio", Outcome.TIMEOUT, 9.0, None, "slow"),)))
        expect(cell(page, "n2")).to_contain_text("93.1 %")
        expect(cell(page, "n2")).to_contain_text("timed out")
        known.client.delete_node("n3")
        expect(cell(page, "n3")).to_have_count(0)


def test_a_name_that_is_registered_meanwhile_can_be_chosen(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url)
    expect(cell(page, "n1")).to_contain_text("25 %")
    with Unreloaded(page):
        known.client.put_producer(Producer("fan_speed", "", 5, Kind.PROGRAM, unit="rpm"))
        known.client.put_value("fan_speed", "n1", "1200")
        expect(page.get_by_label("Value", exact=True)).to_contain_text("fan_speed")
        expect(page.get_by_label("Value", exact=True)).to_have_value("cpu_free_ratio")
        choose(page, "Value", "fan_speed")
        expect(cell(page, "n1")).to_contain_text("1,200 rpm")


def test_an_old_value_says_that_it_is_stale_until_the_next_comes(tabs: Tabs, known: Known) -> None:
    """The first value has nearly reached its ttl, of which the second has enough for any delay."""
    known.client.put_producer(Producer("quick", "scripts/quick.sh", 2.0, ttl=600))
    old = Run("quick", Outcome.OK, 0.1, "1", age=597, exit_status=0)
    known.client.report("n1", Report("b", 2, "1.0", (old,)))
    page = tabs.open(known.url, "#/cluster?name=quick")
    with Unreloaded(page):
        expect(cell(page, "n1")).to_contain_text("stale")
        expect(page.get_by_text(re.compile("1 stale"))).to_be_visible()
        known.client.report("n1", Report("b", 3, "1.0", (ran("quick", "2"),)))
        expect(cell(page, "n1")).not_to_contain_text("stale")


def test_an_age_goes_on_where_it_was_when_the_page_is_loaded_anew(tabs: Tabs, known: Known) -> None:
    """The values have not changed meanwhile, so that a kept answer would still be good by its tag."""
    page = tabs.open(known.url, "#/cluster?name=rack")
    expect(cell(page, "n1")).to_contain_text(re.compile(r"\b([6-9]|\d{2,}) s ago"))
    tabs.reload(page)
    expect(cell(page, "n1")).to_contain_text("r7")

    found = re.search(r"(\d+) s ago", cell(page, "n1").inner_text())
    assert found and int(found[1]) >= 6


def test_what_could_not_be_loaded_once_is_loaded_a_little_later(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/jobs")
    tabs.expect(page, r"status of 503")
    busy = {"error": {"code": "not_ready", "message": "too busy just now", "field": None}}
    page.route("**/api/v1/data?*", lambda route: route.fulfill(status=503, json=busy))
    go(page, "#/cluster", "Cluster")
    expect(page.get_by_role("alert").filter(has_text="too busy just now")).to_be_visible()
    page.unroute("**/api/v1/data?*")

    expect(cell(page, "n1")).to_contain_text("25 %")
    expect(page.get_by_role("alert").filter(has_text="too busy just now")).to_have_count(0)


def test_a_node_that_comes_takes_the_focus_from_no_other(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url)
    expect(cell(page, "n1")).to_contain_text("25 %")
    press_until(page, re.compile(r"^n1\b"))
    known.client.put_value("cpu_free_ratio", "m9", 0.125)
    expect(nodes(page).first).to_contain_text("m9")

    assert focused(page).startswith("n1")


def test_a_node_that_falls_silent_says_so(tabs: Tabs, tmp_path: Path) -> None:
    hands = Hands()
    with serving(f"sqlite:///{tmp_path / 'infosvc.db'}", hands, heartbeat=0.5, lost_after=4.0) as service:
        service.client.put_producer(Producer("cpu_free_ratio", "x", 2.0, ttl=600))
        service.client.put_node("n1", "127.0.0.1:9")
        service.client.put_slot("n1", "cpu_free_ratio", True)
        page = tabs.open(service.url)
        expect(cell(page, "n1")).to_be_visible()
        with Unreloaded(page):
            service.client.report("n1", Report("b", 1, "1.0", (ran("cpu_free_ratio", "0.5"),)))
            expect(cell(page, "n1")).to_contain_text("0.5")
            hands.turn(2)
            expect(cell(page, "n1")).to_contain_text("agent is silent")
            hands.turn(3)
            expect(cell(page, "n1")).to_contain_text(re.compile(r"^n1 lost was 0\.5, .* ago$"))
            expect(cell(page, "n1")).to_have_class("cell no-step is-failed is-lost")
            expect(page.get_by_text("1 node: 1 lost. Values: 1 fresh.", exact=True)).to_be_visible()
            service.client.report("n1", Report("b", 2, "1.0", ()))
            expect(cell(page, "n1")).not_to_contain_text("lost")
            expect(cell(page, "n1")).to_have_class(re.compile(r"\bstep-3\b"))


def test_while_the_service_is_away_the_page_stays_says_so_and_goes_on_when_it_is_back(
    tabs: Tabs, tmp_path: Path
) -> None:
    database, port = f"sqlite:///{tmp_path / 'infosvc.db'}", free_port()
    with serving(database, port=port) as service:
        service.client.put_producer(Producer("rack", "", 600.0, Kind.PROGRAM))
        service.client.put_value("rack", "n1", "seven")
        page = tabs.open(service.url)
        expect(cell(page, "n1")).to_contain_text("seven")
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
    with Unreloaded(page):
        expect(page.get_by_text("Connection away")).to_be_visible()
        expect(cell(page, "n1")).to_contain_text("seven")
        with serving(database, port=port) as service:
            service.client.put_value("rack", "n1", "eight")
            expect(cell(page, "n1")).to_contain_text("eight", timeout=60_000)
            expect(page.get_by_text("Live", exact=True)).to_be_visible()


def test_the_colours_of_a_ratio_stay_as_they_are_while_it_lies_within_0_and_1(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url)
    keys = page.get_by_role("list", name="What the colours mean").get_by_role("listitem")
    ratios = ["0 to 20 %", "20 to 40 %", "40 to 60 %", "60 to 80 %", "80 to 100 %"]

    expect(keys).to_contain_text([*ratios, "stale", "failed", "no data"])
    known.client.report("n1", Report("b", 2, "1.0", (ran("cpu_free_ratio", "3"),)))
    expect(keys).to_contain_text(["50 to 100 %", "100 to 150 %", "150 to 200 %", "200 to 250 %", "250 to 300 %"])


def test_little_that_is_free_has_the_colour_of_much_in_use_here_and_on_the_overview(tabs: Tabs, known: Known) -> None:
    known.client.put_producer(Producer("cpu_usage", "", 600.0, Kind.PROGRAM, unit="ratio"))
    for node, free in (("n1", 0.05), ("n2", 0.75)):
        tell(known.client, node, 2, cpu_free=free, disk_free=0.5)
        known.client.put_value("cpu_usage", node, 1 - free)
    page = tabs.open(known.url, "#/cluster?name=cpu_free_ratio")
    for name in ("cpu_free_ratio", "cpu_usage"):
        choose(page, "Value", name)
        expect(page.get_by_label("Value", exact=True)).to_have_value(name)
        expect(cell(page, "n1")).to_contain_text("5 %" if name == "cpu_free_ratio" else "95 %")
        expect(cell(page, "n1")).to_have_class(re.compile(r"\bstep-5\b"))
        expect(cell(page, "n2")).to_have_class(re.compile(r"\bstep-2\b"))
    choose(page, "Value", "cpu_free_ratio")
    key = page.get_by_role("list", name="What the colours mean").get_by_role("listitem").filter(has_text="0 to 20 %")
    expect(key.locator(".swatch")).to_have_class("swatch step-5")
    go(page, "#/overview", "Overview")
    busy = page.get_by_role("region", name="Nodes").get_by_role("link").filter(has_text="n1")
    expect(busy).to_have_class(re.compile(r"\bstep-5\b"))


def test_a_node_that_is_out_of_disk_has_the_mark_of_it_whatever_value_is_shown(tabs: Tabs, known: Known) -> None:
    tell(known.client, "n1", 2, cpu_free=0.5, disk_free=0.007)
    tell(known.client, "n2", 2, cpu_free=0.5, disk_free=0.05)
    page = tabs.open(known.url, "#/cluster?name=cpu_free_ratio")

    expect(cell(page, "n1")).to_contain_text(re.compile(r"50 %.*, disk 0\.7 % free$"))
    expect(cell(page, "n1")).to_have_class(re.compile(r"\bstep-3 .*is-failed\b"))
    expect(cell(page, "n2")).to_contain_text("50 %")
    expect(cell(page, "n2")).not_to_have_class(re.compile("is-failed"))
    choose(page, "Value", "cpu_count")
    expect(cell(page, "n1")).to_contain_text(re.compile(r"8 cpus.*, disk 0\.7 % free$"))


def test_what_looks_like_markup_is_shown_as_text(tabs: Tabs, known: Known) -> None:
    known.client.put_value("rack", "n1", "<img src='http://198.51.100.1/x' onerror='alert(1)'>")
    page = tabs.open(known.url, "#/cluster?name=rack")

    expect(cell(page, "n1")).to_contain_text("<img src=")
    expect(page.locator("main img")).to_have_count(0)


def test_a_cell_leads_to_its_node_by_keyboard(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url)
    expect(cell(page, "n1")).to_contain_text("25 %")
    press_until(page, re.compile(r"^n1\b"))
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile(r"#/node/n1$"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("n1")


def test_a_service_that_knows_nothing_says_what_to_do(tabs: Tabs, tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path / 'infosvc.db'}") as service:
        page = tabs.open(service.url)
        expect(page.get_by_text("No data name is registered yet")).to_be_visible()


def test_a_cluster_without_nodes_says_what_to_do(tabs: Tabs, tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path / 'infosvc.db'}") as service:
        service.client.put_producer(Producer("rack", "", 600.0, Kind.PROGRAM))
        page = tabs.open(service.url)
        expect(page.get_by_text("No node is enrolled")).to_be_visible()


@pytest.fixture
def many(known: Known) -> Known:
    """A thousand nodes more, whose values fall as their numbers grow."""
    known.client.put_producer(Producer("wide", "", 600.0, Kind.PROGRAM, unit="bytes"))
    for number in range(MANY):
        known.client.put_value("wide", f"node{number:04}", (MANY - number) * 1000)
    for name in ("n1", "n2", "n3"):
        known.client.delete_node(name)
    return known


def test_a_thousand_nodes_are_there_are_filtered_and_are_sorted(tabs: Tabs, many: Known) -> None:
    page = tabs.open(many.url, "#/cluster?name=wide")
    expect(nodes(page)).to_have_count(MANY)
    expect(nodes(page).first).to_contain_text("node0000")
    expect(nodes(page).last).to_contain_text("node0999")
    expect(cell(page, "node0000")).to_contain_text("1 MB")

    page.get_by_label("Nodes whose name has").fill("NODE07")
    expect(nodes(page)).to_have_count(100)
    expect(page.get_by_text("100 nodes shown")).to_be_attached()
    page.get_by_label("Nodes whose name has").fill("nothing like that")
    expect(nodes(page)).to_have_count(0)
    page.get_by_label("Nodes whose name has").fill("")
    expect(nodes(page)).to_have_count(MANY)

    many.client.put_value("wide", "node0500", 5_000_000)
    choose(page, "Order", "value")
    expect(nodes(page).first).to_contain_text("node0500")
    expect(nodes(page).last).to_contain_text("node0999")
    choose(page, "Order", "age")
    expect(nodes(page).first).to_contain_text("node0000")
    expect(nodes(page).last).to_contain_text("node0500")


def test_a_list_that_comes_in_parts_is_shown_whole(tabs: Tabs, known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("paging", "values"):
        monkeypatch.setattr(f"infosvc.http.api.{place}.most_bytes", lambda: 100)
    assert len(known.client.nodes()) == 3
    page = tabs.open(known.url)
    for name, text in (("n1", "25 %"), ("n2", "93.1 %"), ("n3", "")):
        expect(cell(page, name)).to_contain_text(text)
