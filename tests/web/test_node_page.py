"""#/node/NAME: what one node is worth, what runs there, and how it went."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from infosvc.wire.records import Kind, Outcome, Producer, Report, Run
from tests.web.browser import Tabs, Unreloaded
from tests.web.conftest import Known, ran, tell


def row(page: Page, table: str, name: str) -> Locator:
    """The row of one data name."""
    head = page.get_by_role("rowheader", name=name, exact=True)
    return page.get_by_role("table", name=table).get_by_role("row").filter(has=head)


def test_it_shows_how_the_agent_is_and_every_value(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/node/n1")

    expect(page.get_by_role("heading", level=1)).to_have_text("Node n1")
    expect(page.locator("main")).to_contain_text("ready: its agent reports")
    expect(page.locator("main")).to_contain_text("127.0.0.1:9")
    expect(row(page, "Values of this node", "cpu_free_ratio")).to_contain_text("25 %")
    expect(row(page, "Values of this node", "load_1m")).to_contain_text("3.5 processes")
    expect(row(page, "Values of this node", "rack")).to_contain_text("r7")


def test_a_node_that_is_nearly_out_of_disk_says_so_above_all_else(tabs: Tabs, known: Known) -> None:
    tell(known.client, "n1", 2, cpu_free=0.5, disk_free=0.007)
    page = tabs.open(known.url, "#/node/n1")
    needs = page.get_by_role("region", name="Needs attention").get_by_role("listitem")

    expect(needs).to_have_text("Error n1 has 7 GB of its disk left, 0.7 %make room, or add a disk")
    with Unreloaded(page):
        tell(known.client, "n1", 3, cpu_free=0.5, disk_free=0.05)
        expect(needs).to_contain_text("Warning n1 has 50 GB of its disk left, 5 %")
        tell(known.client, "n1", 4, cpu_free=0.5, disk_free=0.5)
        expect(needs).to_have_count(0)


def test_it_shows_each_slot_with_what_went_wrong(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/node/n2")

    expect(row(page, "Slots of this node", "cpu_free_ratio")).to_contain_text("running")
    expect(row(page, "Slots of this node", "load_1m")).to_contain_text("7 s")
    expect(row(page, "Slots of this node", "load_1m")).to_contain_text("failed")
    expect(row(page, "Slots of this node", "load_1m")).to_contain_text("no file <b>/proc/loadavg</b>")
    expect(row(page, "Slots of this node", "gpu_usage")).to_contain_text("in quarantine")
    expect(row(page, "Slots of this node", "gpu_usage")).to_contain_text("ten failures in a row")


def test_values_and_slots_follow_what_happens_without_loading_anew(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/node/n1")
    expect(row(page, "Values of this node", "load_1m")).to_contain_text("3.5")
    with Unreloaded(page):
        failed = Run("load_1m", Outcome.TIMEOUT, 9.0, None, "too slow", exit_status=-9)
        known.client.report("n1", Report("b", 2, "1.0", (ran("cpu_free_ratio", "0.75"), failed)))
        expect(row(page, "Values of this node", "cpu_free_ratio")).to_contain_text("75 %")
        expect(row(page, "Values of this node", "load_1m")).to_contain_text("timed out")
        expect(row(page, "Values of this node", "load_1m")).to_contain_text("too slow")
        known.client.put_slot("n1", "load_1m", False)
        expect(row(page, "Slots of this node", "load_1m")).to_contain_text("stopped")
        known.client.delete_slot("n1", "load_1m")
        expect(row(page, "Slots of this node", "load_1m")).to_have_count(0)


def test_history_that_is_kept_for_an_hour_is_drawn(tabs: Tabs, known: Known) -> None:
    command = "scripts/cpu_free_ratio.sh"
    known.client.put_producer(Producer("cpu_free_ratio", command, 2.0, unit="ratio", ttl=600, keep=7_200))
    for number, value in enumerate(("0.1", "0.4", "0.2"), start=2):
        known.client.report("n1", Report("b", number, "1.0", (ran("cpu_free_ratio", value),)))
    page = tabs.open(known.url, "#/node/n1")

    line = row(page, "Values of this node", "cpu_free_ratio").get_by_role("img")
    expect(line).to_have_accessible_name("cpu_free_ratio: from 10 % to 40 %, 4 points")


def test_the_last_hour_of_every_other_number_is_drawn_with_its_gaps(tabs: Tabs, known: Known) -> None:
    for number, (value, age) in enumerate((("1", 3_000), ("2", 2_970), ("4", 600), ("3", 570)), start=2):
        run = Run("load_1m", Outcome.OK, 0.1, value, age=age)
        known.client.report("n1", Report("b", number, "1.0", (run,)))
    page = tabs.open(known.url, "#/node/n1")

    line = row(page, "Values of this node", "load_1m").get_by_role("img")
    expect(line).to_have_accessible_name("load_1m: from 1 processes to 4 processes, 5 points")
    expect(line.locator("path")).to_have_attribute("d", re.compile("^M[^M]*L[^M]*M[^M]*L[^M]*L[^M]*$"))
    expect(row(page, "Values of this node", "cpu_free_ratio").get_by_role("img")).to_have_accessible_name(
        "cpu_free_ratio: from 25 % to 25 %, 1 point"
    )
    expect(row(page, "Values of this node", "rack")).to_contain_text("no line: not a number")


def test_a_node_without_an_agent_that_answers_has_no_log_and_says_why(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/node/n1")
    tabs.expect(page, r"status of 503")
    page.get_by_role("button", name="Log of load_1m").click()

    expect(page.get_by_role("table", name="Slots of this node").get_by_role("alert")).to_contain_text("n1")


def test_a_node_that_is_not_enrolled_says_so(tabs: Tabs, known: Known) -> None:
    known.client.put_value("rack", "elsewhere", "r8")
    page = tabs.open(known.url, "#/node/elsewhere")
    tabs.expect(page, r"status of 404")

    expect(page.locator("main")).to_contain_text("not enrolled")
    expect(row(page, "Values of this node", "rack")).to_contain_text("r8")


def test_a_node_that_is_enrolled_meanwhile_is_seen_without_loading_anew(tabs: Tabs, known: Known) -> None:
    known.client.put_value("rack", "elsewhere", "r8")
    page = tabs.open(known.url, "#/node/elsewhere")
    tabs.expect(page, r"status of 404")
    expect(page.locator("main")).to_contain_text("not enrolled")
    with Unreloaded(page):
        known.client.put_node("elsewhere", "127.0.0.1:19")
        expect(page.locator("main")).to_contain_text("127.0.0.1:19")


def test_a_name_that_is_registered_meanwhile_is_seen_without_loading_anew(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/node/n1")
    expect(row(page, "Values of this node", "rack")).to_contain_text("r7")
    with Unreloaded(page):
        known.client.put_producer(Producer("late", "", 60.0, Kind.PROGRAM, ttl=600))
        late = row(page, "Values of this node", "late")
        for _ in range(240):
            known.client.put_value("late", "n1", "came")
            page.wait_for_timeout(250)
            if late.is_visible():  # names are learnt of no more often than every two seconds after a load
                break
        expect(late).to_contain_text("came")
