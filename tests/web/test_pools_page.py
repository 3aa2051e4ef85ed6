"""#/pools, on pools that are invented."""

from __future__ import annotations

import re
from dataclasses import replace

from playwright.sync_api import Locator, Page, expect

from tests.web.browser import Tabs, Unreloaded, accessible, press_until
from tests.web.conftest import Known
from tests.web.invented import Invented
from tests.web.invented_pools import ENDED, PHOTOS, WORKS


def rows(page: Page, region: str = "Pools") -> Locator:
    """Those of a table."""
    return page.get_by_role("region", name=region, exact=True).locator("tbody tr")


def test_each_pool_has_a_line_and_the_own_one_more_words(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/pools")

    expect(page.get_by_role("heading", level=1)).to_have_text("Pools")
    expect(page.get_by_text("2 pools, 1 of them yours and ready for jobs.")).to_be_visible()
    expect(rows(page)).to_have_count(2)
    mine, theirs = rows(page).all()
    expect(mine.get_by_role("rowheader")).to_have_text(re.compile("^photos$"))
    expect(mine.get_by_role("cell")).to_have_text(
        ["running", "onnx, alexnet, batch 8", "1 of 2 ready", "1", "30m after its last job or picture", PHOTOS, ""]
    )
    expect(theirs.get_by_role("rowheader")).to_have_text("paintings of you")
    expect(theirs).to_contain_text("accepted")


def test_jobs_stand_below_with_how_far_they_are(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/pools")

    expect(rows(page, "Jobs in pools")).to_have_count(2)
    works, ended = rows(page, "Jobs in pools").all()
    expect(works.get_by_role("rowheader")).to_have_text(WORKS)
    expect(works).to_contain_text("12 of 40")
    expect(works.get_by_role("progressbar", name=f"Progress of {WORKS}")).to_have_attribute("value", "12")
    expect(ended.get_by_role("rowheader")).to_have_text(ENDED)
    expect(ended).to_contain_text("/out/<b>1</b> exists, 1 with an error")
    expect(ended.get_by_role("progressbar")).to_have_count(0)


def test_what_changes_is_seen_and_told_without_loading_anew(tabs: Tabs, known: Known, board: Invented) -> None:
    page = tabs.open(known.url, "#/pools")
    expect(rows(page, "Jobs in pools")).to_have_count(2)
    with Unreloaded(page):
        shown = board.pools.shown
        ended, works = shown.jobs or ()
        jobs = (ended, replace(works, state="succeeded", done=40))
        board.pools.shown = replace(shown, jobs=jobs, ends_in=1500.0, nodes=shown.nodes[:1], most_nodes=3)
        expect(rows(page).first).to_contain_text("1 of 3 ready0in 25 min")
        expect(rows(page, "Jobs in pools").first).to_contain_text("succeeded 40 of 40")
        expect(page.locator("#live")).to_contain_text(f"{WORKS} succeeded.")


def test_a_master_that_is_silent_leaves_what_it_said_with_its_age(tabs: Tabs, known: Known, board: Invented) -> None:
    board.pools.shown = replace(board.pools.shown, jobs=None, silent_seconds=45.0, said="its master does not answer")
    page = tabs.open(known.url, "#/pools")

    expect(rows(page).first).to_contain_text("1 of 2 ready, 45 s ago")
    expect(rows(page).first).to_contain_text("its master does not answer")
    expect(rows(page, "Jobs in pools")).to_have_count(0)


def test_a_pool_that_cannot_be_read_says_why_and_the_others_stand(tabs: Tabs, known: Known, board: Invented) -> None:
    board.pools.listed = tuple(replace(one, own=True) for one in board.pools.listed)
    page = tabs.open(known.url, "#/cluster")
    tabs.expect(page, r"status of 404")
    page.goto("/#/pools")

    expect(rows(page).last).to_contain_text("there is no pool paintings: me has photos")
    expect(rows(page).first).to_contain_text("1 of 2 ready")


def test_one_leads_to_its_application_by_keyboard(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/pools")
    expect(rows(page)).to_have_count(2)
    tabs.expect(page, r"status of 404")
    press_until(page, PHOTOS)
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", level=1)).to_contain_text(PHOTOS)
    expect(page.get_by_role("alert").filter(has_text=PHOTOS)).to_be_visible()


def test_where_no_pool_is_up_it_says_how_to_start_one(tabs: Tabs, known: Known, board: Invented) -> None:
    board.pools.listed = ()
    page = tabs.open(known.url, "#/pools")

    expect(page.get_by_text("No pool is up. nodewise pool up starts one.")).to_be_visible()
    expect(page.get_by_role("region", name="Pools")).to_be_hidden()


def test_on_a_phone_nothing_is_cut_off(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/pools")
    page.set_viewport_size({"width": 390, "height": 844})
    expect(rows(page)).to_have_count(2)

    for region in ("Pools", "Jobs in pools"):
        inner = page.get_by_role("region", name=region, exact=True)
        assert inner.evaluate("region => region.scrollWidth <= region.clientWidth"), region
    accessible(page)
