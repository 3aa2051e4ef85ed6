"""Everything that changes something, done without a mouse; what the service refuses stands beside what was wrong."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from infosvc.wire.errors import NotFound
from infosvc.wire.records import Producer, Slot
from tests.infosvc.conftest import TOKEN
from tests.web.browser import Tabs, focused, press_until
from tests.web.conftest import Known


def typed(page: Page, label: str | re.Pattern[str], text: str) -> None:
    """Go on to a field and put this in the place of what stands there."""
    press_until(page, label)
    page.keyboard.press("Control+A")
    page.keyboard.type(text)


def pressed(page: Page, name: str | re.Pattern[str]) -> None:
    """Go on to a button and press it."""
    press_until(page, name)
    page.keyboard.press("Enter")


def slot(known: Known, node_name: str, data_name: str) -> Slot:
    return next(each for each in known.client.slots(node_name).slots if each.data_name == data_name)


def state(page: Page, name: str) -> Locator:
    """The row of a slot."""
    head = page.get_by_role("rowheader", name=name, exact=True)
    return page.get_by_role("table", name="Slots of this node").get_by_role("row").filter(has=head)


def refused(field: Locator, said: str | re.Pattern[str]) -> None:
    """The field is marked, and what is wrong is told beside it to who sees and to who hears."""
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_accessible_description(re.compile(said))
    expect(field.locator("xpath=..")).to_contain_text(re.compile(said))


def test_the_first_tab_leads_past_the_header(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.keyboard.press("Tab")
    assert focused(page) == "Skip to the content"
    page.keyboard.press("Enter")

    assert page.evaluate("() => document.activeElement.id") == "main"
    assert page.url.endswith("#/cluster") or "#/cluster?" in page.url


def test_what_has_the_focus_can_be_seen(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url)
    press_until(page, "Data names")
    outline, shadow = page.evaluate(
        "() => { const look = getComputedStyle(document.activeElement); return [look.outlineStyle, look.boxShadow]; }"
    )

    assert (outline, shadow) != ("none", "none")


def test_a_new_page_has_the_focus_on_its_heading(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url)
    pressed(page, "Data names")
    expect(page.get_by_role("heading", level=1, name="Data names")).to_be_focused()


def test_so_has_one_that_is_opened_before_it_is_known_who_reads(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url)
    held: list[Route] = []
    page.route("**/api/v1/session", lambda route: held.append(route))
    with page.expect_request("**/api/v1/session"):  # what is asked for only later would be held for ever
        tabs.reload(page)
    pressed(page, "Data names")
    expect(page).to_have_url(re.compile("#/data$"))
    for one in held:
        one.continue_()

    expect(page.get_by_role("heading", level=1, name="Data names")).to_be_focused()


def test_a_slot_is_stopped_and_started(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/node/n1", TOKEN)
    expect(state(page, "load_1m")).to_contain_text("running")
    pressed(page, "Stop: load_1m")
    expect(state(page, "load_1m")).to_contain_text("stopped")
    assert (slot(known, "n1", "load_1m").running, slot(known, "n1", "load_1m").interval) == (False, 7.0)
    pressed(page, "Start: load_1m")
    expect(state(page, "load_1m")).to_contain_text("running")

    assert (slot(known, "n1", "load_1m").running, slot(known, "n1", "load_1m").interval) == (True, 7.0)


def test_after_a_change_the_focus_is_still_in_the_row(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/node/n1", TOKEN)
    pressed(page, "Stop: load_1m")
    expect(state(page, "load_1m")).to_contain_text("stopped")

    expect(state(page, "load_1m").locator(":focus")).to_have_count(1)


def test_a_slot_gets_another_interval_and_a_wrong_one_is_refused(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/node/n1", TOKEN)
    press_until(page, "Stop: load_1m")
    typed(page, "Seconds between runs of load_1m", "9")
    page.keyboard.press("Enter")
    expect(state(page, "load_1m").get_by_role("cell").nth(1)).to_have_text("9 s")  # its last run may be 9 s ago, too
    assert slot(known, "n1", "load_1m").interval == 9.0

    tabs.expect(page, r"status of 422")
    press_until(page, "Stop: load_1m")
    typed(page, "Seconds between runs of load_1m", "0")
    page.keyboard.press("Enter")
    expect(page.get_by_role("table", name="Slots of this node").get_by_role("alert")).to_contain_text("interval")
    assert slot(known, "n1", "load_1m").interval == 9.0


def test_an_interval_that_is_typed_outlives_what_happens_to_the_slots(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/node/n1", TOKEN)
    press_until(page, "Stop: load_1m")
    typed(page, "Seconds between runs of load_1m", "77")
    press_until(page, "Change the interval of load_1m")
    known.client.put_slot("n1", "cpu_free_ratio", True, 88.0)
    expect(state(page, "cpu_free_ratio")).to_contain_text("88 s")
    page.keyboard.press("Enter")
    expect(state(page, "load_1m")).to_contain_text("77 s")

    assert slot(known, "n1", "load_1m").interval == 77.0


def test_a_stop_leaves_the_interval_to_the_registration_that_has_changed(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/node/n1", TOKEN)
    expect(state(page, "cpu_free_ratio")).to_contain_text("running")
    for interval in (77.0, 99.0):
        known.client.put_producer(Producer("cpu_free_ratio", "scripts/cpu_free_ratio.sh", interval, unit="ratio"))
        pressed(page, re.compile("^(Stop|Start): cpu_free_ratio"))
        expect(page.locator("#live")).to_contain_text("cpu_free_ratio was changed")
        expect(state(page, "cpu_free_ratio")).to_contain_text(f"{interval:.0f} s")

    assert slot(known, "n1", "cpu_free_ratio").interval == 99.0


def test_a_quarantine_is_lifted(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/node/n2", TOKEN)
    before = slot(known, "n2", "gpu_usage").epoch
    pressed(page, "Lift quarantine: gpu_usage")
    expect(page.locator("#live")).to_contain_text("gpu_usage was changed")

    assert slot(known, "n2", "gpu_usage").epoch == before + 1


def test_another_producer_is_started_on_a_node(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/node/n1", TOKEN)
    expect(page.get_by_label("Producer", exact=True)).to_be_visible()
    press_until(page, "Producer")
    page.keyboard.type("perf")
    typed(page, re.compile(r"as registered if empty"), "30")
    pressed(page, "Start")
    expect(state(page, "perf_cpu")).to_contain_text("running")

    assert slot(known, "n1", "perf_cpu").interval == 30.0


def test_a_name_is_registered_and_what_is_wrong_stands_beside_its_field(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/data", TOKEN)
    tabs.expect(page, r"status of 412", r"status of 422")
    pressed(page, "Register a name")
    name = page.get_by_label(re.compile(r"^Name \("))
    expect(name).to_be_focused()
    page.keyboard.type("9lives")
    page.keyboard.press("Enter")
    refused(name, "starting with a letter")
    expect(name).to_be_focused()

    page.keyboard.press("Control+A")
    page.keyboard.type("own_value")
    typed(page, "Command", "scripts/own.sh --all")
    typed(page, re.compile("^Interval in seconds"), "often")
    page.keyboard.press("Enter")
    refused(page.get_by_label(re.compile("^Interval in seconds")), "time_max")
    expect(name).not_to_have_attribute("aria-invalid", "true")
    page.keyboard.press("Control+A")
    page.keyboard.type("5")

    press_until(page, re.compile(r"^Name \("), key="Shift+Tab")
    page.keyboard.press("Control+A")
    page.keyboard.type("load_1m")
    page.keyboard.press("Enter")
    refused(name, "load_1m")
    page.keyboard.press("Control+A")
    page.keyboard.type("own_value")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/data/own_value$"))
    stored = known.client.producer("own_value")
    assert (stored.cmd, stored.time_max, stored.ttl) == ("scripts/own.sh --all", 5.0, 15.0)


def test_a_registration_is_edited(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/data/load_1m", TOKEN)
    tabs.expect(page, r"status of 422")
    expect(page.get_by_role("button", name="Edit")).to_be_visible()
    pressed(page, "Edit")
    typed(page, re.compile("^Timeout in seconds"), "-1")
    page.keyboard.press("Enter")
    refused(page.get_by_label(re.compile("^Timeout in seconds")), "timeout")
    page.keyboard.press("Control+A")
    page.keyboard.type("3")
    typed(page, "Unit", "runnable")
    page.keyboard.press("Enter")
    expect(page.locator("#live")).to_contain_text("load_1m is saved")

    stored = known.client.producer("load_1m")
    assert (stored.unit, stored.timeout, stored.help, stored.ttl) == ("runnable", 3.0, "Load.", 600.0)
    expect(page.get_by_role("button", name="Edit")).to_be_focused()


def test_who_was_overtaken_is_told_and_may_save_all_the_same(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/data/load_1m", TOKEN)
    tabs.expect(page, r"status of 412")
    pressed(page, "Edit")
    typed(page, "Unit", "mine")
    known.client.put_producer(Producer("load_1m", "scripts/load_1m.sh", 2.0, unit="theirs", ttl=600))
    page.keyboard.press("Enter")
    expect(
        page.get_by_role("alert").filter(has_text=re.compile("somebody has changed it", re.IGNORECASE))
    ).to_be_visible()
    assert known.client.producer("load_1m").unit == "theirs"
    pressed(page, "Save")
    expect(page.locator("#live")).to_contain_text("load_1m is saved")

    assert known.client.producer("load_1m").unit == "mine"


def test_a_name_is_deleted_after_a_question(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/data/rack", TOKEN)
    expect(page.get_by_role("button", name="Delete")).to_be_visible()
    pressed(page, "Delete")
    assert focused(page) == "Keep it"
    page.keyboard.press("Enter")
    assert known.client.producer("rack")
    expect(page.get_by_role("button", name="Edit")).to_be_focused()
    pressed(page, "Delete")
    pressed(page, "Delete rack")
    expect(page).to_have_url(re.compile("#/data$"))

    with pytest.raises(NotFound):
        known.client.producer("rack")


def test_a_name_that_others_need_is_not_deleted_and_they_are_named(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/data/cpu_free_ratio", TOKEN)
    tabs.expect(page, r"status of 409")
    pressed(page, "Delete")
    pressed(page, "Delete cpu_free_ratio")

    expect(page.get_by_role("alert").filter(has_text="perf_cpu")).to_be_visible()
    assert known.client.producer("cpu_free_ratio")
