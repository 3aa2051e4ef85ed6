"""The dashboard over real agents: what they measure is seen, and what is pressed reaches them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.infosvc.conftest import TOKEN, Served, serving
from tests.infosvc.shipping.conftest import HOSTS, Hand, Sshd, end_agents, patience
from tests.web.browser import Tabs, Unreloaded, accessible, press_until

pytestmark = pytest.mark.timeout(900)  # a busy machine takes minutes to start agents

SLOW_MS = 180_000  # agents start, and measure some seconds later


@pytest.fixture(scope="module")
def enrolled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with two machines that run what ships."""
    place = tmp_path_factory.mktemp("agents")
    (place / "home" / "service").mkdir(parents=True)
    (place / "home" / "service" / "token").write_text(f"{TOKEN}\n")
    (place / "sshd").mkdir()
    with serving(f"sqlite:///{place / 'infosvc.db'}") as service, Sshd(place / "sshd") as sshd:
        options = sshd.options(place / "nodes")
        try:
            with patience():
                done = Hand(service, options, place / "home").add(*HOSTS)
            assert done.exit_code == 0, done.output
            yield service
        finally:
            end_agents(place / "nodes")


def row(page: Page, table: str, name: str) -> Locator:
    """The row of one data name."""
    head = page.get_by_role("rowheader", name=name, exact=True)
    return page.get_by_role("table", name=table).get_by_role("row").filter(has=head)


def test_what_agents_measure_is_seen_as_it_comes(tabs: Tabs, enrolled: Served) -> None:
    page = tabs.open(enrolled.url, "#/cluster?name=cpu_free_ratio")

    expect(page.get_by_text("2 nodes: 2 ready. Values: 2 fresh.")).to_be_visible(timeout=SLOW_MS)
    cells = page.get_by_role("list", name="Nodes").get_by_role("link")
    expect(cells).to_have_count(2)
    for cell in cells.all():
        expect(cell).to_contain_text("%")


def test_a_node_shows_its_values_and_asks_its_agent_for_the_log(tabs: Tabs, enrolled: Served) -> None:
    page = tabs.open(enrolled.url, f"#/node/{HOSTS[0]}")
    expect(page.locator("main")).to_contain_text("ready: its agent reports", timeout=SLOW_MS)
    expect(row(page, "Values of this node", "memory_available_bytes")).to_contain_text("GB", timeout=SLOW_MS)
    expect(row(page, "Slots of this node", "cpu_free_ratio")).to_contain_text("ok", timeout=SLOW_MS)
    page.get_by_role("button", name="Log of cpu_free_ratio").click()

    runs = page.get_by_role("table", name="Last runs of cpu_free_ratio, newest first")
    expect(runs.get_by_role("row").nth(1)).to_contain_text("ok")
    accessible(page)


def test_every_name_that_ships_is_listed_and_drawn(tabs: Tabs, enrolled: Served) -> None:
    page = tabs.open(enrolled.url, "#/data")

    expect(page.get_by_text(f"{len(enrolled.client.producers())} names")).to_be_visible(timeout=SLOW_MS)
    expect(page.locator("svg").get_by_role("link", name="perf_history, processor", exact=True)).to_be_visible()
    accessible(page)


def test_what_is_stopped_by_keyboard_stops_on_the_node_and_grows_old(tabs: Tabs, enrolled: Served) -> None:
    page = tabs.open(enrolled.url, f"#/node/{HOSTS[1]}", TOKEN)
    value = row(page, "Values of this node", "load_1m")
    expect(value).to_be_visible(timeout=SLOW_MS)
    with Unreloaded(page):
        press_until(page, "Stop: load_1m", most=400)
        page.keyboard.press("Enter")
        expect(row(page, "Slots of this node", "load_1m")).to_contain_text("stopped")
        expect(value).to_contain_text("stale", timeout=SLOW_MS)
        press_until(page, "Start: load_1m", most=400)
        page.keyboard.press("Enter")
        expect(value).not_to_contain_text("stale", timeout=SLOW_MS)
