"""#/queue, on queues that are invented."""

from __future__ import annotations

import re
from dataclasses import replace

from playwright.sync_api import Locator, Page, expect

from infosvc.wire.tasks import EXAMPLE_ID
from tests.infosvc.conftest import TOKEN
from tests.web.browser import Tabs, Unreloaded, press_until
from tests.web.conftest import Known
from tests.web.invented import ENDED, Invented


def rows(page: Page) -> Locator:
    """Those that wait."""
    return page.get_by_role("region", name="What waits").locator("tbody tr")


def test_each_queue_has_a_line_of_figures(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/queue", TOKEN)
    lines = page.get_by_role("list", name="Queues").get_by_role("listitem")

    expect(lines).to_have_count(2)
    expect(lines.first).to_have_text(
        "root.default: has 50 % of the cluster, is sure of 75 %, may have 100 %; application masters have 4,096 of at "
        "most 4,096 MB; 4 running, 3 waiting; 1 user of YARN"
    )
    expect(lines.last).to_contain_text("root.small (stopped)")


def test_those_that_wait_stand_in_order_with_their_reasons(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/queue", TOKEN)

    expect(
        page.get_by_text("3 applications, 1 of them yours, in line. YARN does not have 1 task of yours")
    ).to_be_visible()
    expect(rows(page)).to_have_count(3)
    own, hidden, unknown = rows(page).all()
    expect(own).to_contain_text("1 yours")
    expect(own).to_contain_text("mnist <b>2</b>")
    expect(own).to_contain_text("1,024 MB, 1 vcore")
    expect(own).to_contain_text("in 2 to 9 min")
    expect(own).to_contain_text("room among the application masters of root.default")
    expect(own.get_by_text("in 2 to 9 min")).to_have_attribute("title", re.compile(r"\d+:\d\d:\d\d to .*\d+:\d\d:\d\d"))
    expect(hidden).to_have_text(re.compile("^2root.defaultanother.s$"))
    expect(unknown).to_contain_text("not known: fewer than 10 ended")


def test_one_leads_to_its_page_by_keyboard(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/queue", TOKEN)
    expect(rows(page)).to_have_count(3)
    expect(page.locator(f'a[href="#/task/{EXAMPLE_ID}"]')).to_have_count(1)
    press_until(page, ENDED)
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
