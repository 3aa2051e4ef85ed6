"""#/queue, on queues that are invented."""

from __future__ import annotations

import re
from dataclasses import replace

from playwright.sync_api import Locator, Page, expect

from infosvc.wire.queues import MastersLimit
from infosvc.wire.tasks import EXAMPLE_ID
from tests.infosvc.conftest import TOKEN
from tests.web.browser import Tabs, Unreloaded, accessible, press_until
from tests.web.conftest import Known
from tests.web.invented import ENDED, Invented


def rows(page: Page) -> Locator:
    """Those that wait."""
    return page.get_by_role("region", name="What waits").locator("tbody tr")


def queues(page: Page) -> Locator:
    """YARN's queues."""
    return page.get_by_role("region", name="Queues").locator("tbody tr")


def test_each_queue_has_a_line_of_figures(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/queue", TOKEN)
    table = page.get_by_role("region", name="Queues")

    expect(queues(page)).to_have_count(2)
    expect(table.get_by_role("columnheader")).to_have_text(
        ["Queue", "Used", "Guaranteed", "At most", "Application masters", "Running", "Waiting", "Users"]
    )
    default, small = queues(page).all()
    expect(default.get_by_role("rowheader")).to_have_text("root.default")
    expect(default.get_by_role("cell")).to_have_text(
        ["50 %", "75 %", "100 %", "4,096 of at most 4,096 MB full", "4", "3", "1"]
    )
    expect(small.get_by_role("rowheader")).to_have_text("root.smallstopped: takes no new applications")
    expect(table).to_contain_text("percent of the whole cluster")


def test_the_limit_that_is_full_is_marked(tabs: Tabs, known: Known, board: Invented) -> None:
    """For the application masters the service says so, and of which type of resource."""
    default, small = board.queues.queues
    limit = replace(default.masters, used=3000, is_full=False)
    most_used = replace(default, used=0.998, masters=limit)
    board.queues = replace(board.queues, queues=(most_used, replace(small, used=0.1)))
    page = tabs.open(known.url, "#/queue", TOKEN)
    mark = queues(page).first.get_by_text("full")

    expect(mark).to_have_count(1)
    expect(mark).to_have_css("color", "rgb(179, 33, 27)")
    expect(queues(page).first.get_by_role("cell").nth(2)).to_have_text("100 % full")
    expect(queues(page).last.get_by_text("full")).to_have_count(0)
    gpus = MastersLimit("yarn.io/gpu", 2, 2, is_full=True)
    board.queues = replace(board.queues, queues=(replace(default, masters=gpus), small))
    expect(queues(page).first.get_by_role("cell").nth(3)).to_have_text("2 of at most 2 yarn.io/gpu full")
    expect(queues(page).first.get_by_role("cell").nth(2)).to_have_text("100 %")


def test_when_yarn_was_asked_is_said_and_grows_older_until_it_is_asked_again(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/queue", TOKEN)

    expect(page.get_by_text(re.compile(r"Asked [2-9] s ago\."))).to_be_visible()
    expect(page.get_by_text(re.compile(r"Asked (just now|1 s ago)\."))).to_be_visible()


def test_what_all_wait_for_is_said_once(tabs: Tabs, known: Known, board: Invented) -> None:
    page = tabs.open(known.url, "#/queue", TOKEN)
    reason = "room for application masters in root.default"

    expect(page.get_by_text(f"2 of 3 in root.default wait for {reason}")).to_be_visible()
    expect(rows(page).filter(has_text="the same")).to_have_count(2)
    expect(rows(page).filter(has_text=reason)).to_have_count(0)
    with Unreloaded(page):
        first, hidden, last = board.queues.waiting
        left = (first, hidden, replace(last, waits_for="its turn: 2 before it in root.default"))
        board.queues = replace(board.queues, waiting=left)
        expect(rows(page).first).to_contain_text(reason)
        expect(rows(page).last).to_contain_text("its turn: 2 before it")
        expect(page.get_by_text("in root.default wait for")).to_have_count(0)


def test_on_a_phone_each_row_is_a_block_whose_values_have_labels(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/queue", TOKEN)
    page.set_viewport_size({"width": 390, "height": 844})
    own = rows(page).first
    begins, waits_for = own.get_by_role("cell").nth(2), own.get_by_role("cell").nth(3)

    expect(page.get_by_role("columnheader", name="Waits for")).to_have_count(1)
    expect(own.get_by_role("rowheader")).to_contain_text("mnist <b>2</b>")
    for cell, label in ((begins, "Begins"), (waits_for, "Waits for")):
        box = cell.bounding_box()
        assert box is not None and box["width"] > 0 and box["x"] + box["width"] <= 390
        assert label in cell.evaluate("cell => getComputedStyle(cell, '::before').content")
    for region in ("What waits", "Queues"):
        inner = page.get_by_role("region", name=region)
        assert inner.evaluate("region => region.scrollWidth <= region.clientWidth"), region
    accessible(page)


def test_those_that_wait_stand_in_order_with_their_reasons(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/queue", TOKEN)

    expect(
        page.get_by_text("3 applications, 1 of them yours, in line. YARN does not have 1 task of yours")
    ).to_be_visible()
    expect(rows(page)).to_have_count(3)
    own, hidden, unknown = rows(page).all()
    expect(own).to_contain_text("1 yours")
    expect(own).to_contain_text("mnist <b>2</b>")
    expect(own).to_contain_text("1,024 MB, 1 vcore, 2 yarn.io/gpu")
    expect(own).to_contain_text("in 2 to 9 min")
    expect(own).to_contain_text("the same")
    expect(own.get_by_text("in 2 to 9 min")).to_have_attribute("title", re.compile(r"\d+:\d\d:\d\d to .*\d+:\d\d:\d\d"))
    expect(hidden).to_have_text(re.compile("^another.s2root.default$"))
    expect(unknown).to_contain_text("not known: fewer than 10 ended")


def test_one_leads_to_its_page_by_keyboard(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/queue", TOKEN)
    expect(rows(page)).to_have_count(3)
    expect(page.locator(f'a[href="#/task/{EXAMPLE_ID}"]')).to_have_count(1)
    press_until(page, "theirs")
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", level=1)).to_contain_text(ENDED)


def test_what_waits_no_more_goes_and_is_told(tabs: Tabs, known: Known, board: Invented) -> None:
    page = tabs.open(known.url, "#/queue", TOKEN)
    expect(rows(page)).to_have_count(3)
    with Unreloaded(page):
        left = tuple(replace(one, position=one.position - 1) for one in board.queues.waiting[1:])
        board.queues = replace(board.queues, waiting=left, held_back=0)
        expect(rows(page)).to_have_count(2)
        expect(page.locator("#live")).to_contain_text("mnist <b>2</b> waits no more.")
    expect(page.locator(f'a[href="#/task/{EXAMPLE_ID}"]')).to_have_count(0)


def test_nothing_waits(tabs: Tabs, known: Known, board: Invented) -> None:
    board.queues = replace(board.queues, waiting=(), held_back=0)
    page = tabs.open(known.url, "#/queue", TOKEN)

    expect(page.get_by_text("Nothing waits.")).to_be_visible()
    expect(rows(page)).to_have_count(0)


def test_another_scheduler_is_said(tabs: Tabs, known: Known, board: Invented) -> None:
    said = "YARN uses its fair scheduler here, of whose queues nothing can be told"
    board.queues = replace(board.queues, said=said, queues=(), waiting=(), whole=False)
    page = tabs.open(known.url, "#/queue", TOKEN)

    expect(page.get_by_text(said, exact=True)).to_be_visible()


def test_who_may_see_no_tasks_is_told_so_and_asks_for_nothing(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/queue", known.viewer)

    expect(page.get_by_text("Log in with a token of role user or admin to see what waits.")).to_be_visible()
