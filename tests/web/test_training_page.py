"""#/job/ID of a training run, which is invented: its curves, and what happened to its members."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.browser import Tabs, Unreloaded, press_until
from tests.web.conftest import Known
from tests.web.invented import RUNNING, Invented
from tests.web.invented_training import ODD, WHY, status
from tests.web.test_looks import fits_a_narrow_window, in_both_schemes

FEW = [ODD, "n2", "n3"]
MANY = [f"worker{number:03}" for number in range(256)]


@pytest.fixture
def page(tabs: Tabs, known: Known, board: Invented) -> Page:
    """That of a run on three nodes, one of which was lost."""
    board.status = status(RUNNING, 1500, FEW)
    return tabs.open(known.url, f"#/job/{RUNNING}")


def part(page: Page, title: str) -> Locator:
    return page.get_by_role("region", name="Training").get_by_role("table", name=title)


def rows(page: Page, title: str) -> Locator:
    """Those of a table below its head."""
    return part(page, title).locator("tbody tr")


def test_a_training_run_shows_why_shares_changed_and_what_losses_cost(page: Page) -> None:
    training = page.get_by_role("region", name="Training")

    expect(training).to_contain_text("1,500 of 2,000")
    expect(training).to_contain_text("1, which cost 3 s")
    changes = rows(page, "Changes of shares, the newest first")
    expect(changes.first).to_contain_text("<b>n1</b> 60 → 105, n2 60 → 15a step 1.62 times as fast" + WHY)
    expect(changes.last).to_contain_text("the first shares, all nodes alike")
    expect(rows(page, "Lost members")).to_have_text(["n368 s3 ssilent for 5.0 s"])
    generations = rows(page, "Generations, the newest first")
    expect(generations.first).to_contain_text("its members' stategoes on")
    expect(generations.last).to_contain_text("the beginninglost n3")
    expect(rows(page, "Work of each node").filter(has_text="n2")).to_contain_text("22,500")
    expect(page.locator("main")).not_to_contain_text("[object Object]")


def test_its_curves_tell_in_words_what_they_draw(page: Page) -> None:
    loss, share, pace = (page.locator("figure").filter(has_text=name) for name in ("Loss", "Share of", "Computing"))

    expect(loss.get_by_role("img", name=re.compile("^Loss by step"))).to_be_visible()
    expect(loss).to_contain_text("0.2 (0.2 to 2.096)")
    expect(share).to_contain_text("<b>n1</b>: 87.5 % (33.3 % to 87.5 %)")
    expect(share).to_contain_text("n3: 33.3 % (33.3 % to 33.3 %)")
    expect(pace).to_contain_text("n2: 0.052 s")
    page.wait_for_function(f"() => ({COLOURED})() > 50")  # lines are drawn


def test_it_goes_on_without_loading_anew_and_stays_when_the_run_has_ended(page: Page, board: Invented) -> None:
    training = page.get_by_role("region", name="Training")
    expect(training).to_contain_text("1,500 of 2,000")
    with Unreloaded(page):
        board.status = status(RUNNING, 1600, FEW)
        expect(training).to_contain_text("1,600 of 2,000")
        board.status = status(RUNNING, 2000, FEW, "succeeded")
        board.finish("SUCCEEDED")
        expect(page.get_by_role("region", name="Report")).to_contain_text("2000 of 2000 steps")
        expect(training).to_contain_text("2,000 of 2,000")
        expect(rows(page, "Lost members")).to_contain_text("silent for 5.0 s")


def test_of_256_nodes_the_twelve_largest_are_shown_and_the_others_together(
    tabs: Tabs, known: Known, board: Invented
) -> None:
    board.status = status(RUNNING, 1500, MANY)
    page = tabs.open(known.url, f"#/job/{RUNNING}")

    expect(rows(page, "Work of each node")).to_have_count(13)
    expect(rows(page, "Work of each node").last).to_contain_text("244 others together")
    expect(page.locator("figure").filter(has_text="Share of").locator("li")).to_have_count(13)
    expect(rows(page, "Generations, the newest first").last).to_contain_text("and 244 others")
    changes = rows(page, "Changes of shares, the newest first")
    expect(changes.last).to_contain_text("worker011 1, 244 others together 244")
    expect(changes.first).to_contain_text("of the others alone")


def test_it_is_for_everybody_in_light_and_dark_and_on_a_telephone(page: Page) -> None:
    expect(page.locator("figure")).to_have_count(3)
    press_until(page, "Changes of shares, the newest first")

    in_both_schemes(page)
    fits_a_narrow_window(page)


def test_what_cannot_be_drawn_is_said_and_the_rest_of_the_page_stays(tabs: Tabs, known: Known, board: Invented) -> None:
    board.status = status(RUNNING, 1500, FEW)
    board.status.section["training"]["shares"] = 3  # type: ignore[index]
    page = tabs.open(known.url, f"#/job/{RUNNING}")

    expect(page.get_by_role("region", name="Training")).to_contain_text("cannot be drawn")
    expect(page.get_by_text("1500 of 2000 steps")).to_be_visible()


COLOURED = """() => {
    const canvas = document.querySelectorAll("figure canvas")[1];
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let found = 0;
    for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 200 && data[at + 2] > data[at] + 60) found += 1;
    return found;
}"""
