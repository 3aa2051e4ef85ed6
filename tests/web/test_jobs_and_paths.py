"""#/jobs, #/job/ID and #/path, on a cluster that is invented."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from infosvc.wire.records import Report
from jobs.dashboard.answers import Ending
from tests.infosvc.conftest import TOKEN
from tests.web.browser import Tabs, Unreloaded, focused, press_until
from tests.web.conftest import Known, ran
from tests.web.invented import COPIED, ENDED, FAILED, NODES, RUNNING, Invented


def row(page: Page, table: str, name: str) -> Locator:
    """The row of one thing."""
    head = page.get_by_role("rowheader", name=name, exact=True)
    return page.get_by_role("table", name=table).get_by_role("row").filter(has=head)


def test_every_job_is_listed_and_leads_to_its_page(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/jobs")

    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    expect(page.get_by_text("4 jobs, 1 running.")).to_be_visible()
    expect(row(page, "Jobs, the newest first", RUNNING)).to_contain_text("30 %")
    expect(row(page, "Jobs, the newest first", ENDED)).to_contain_text("succeeded")
    expect(row(page, "Jobs, the newest first", FAILED)).to_contain_text("no node has a fresh <perf_cpu>")
    press_until(page, RUNNING)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text(RUNNING)


def test_a_job_that_ends_is_seen_without_loading_anew(tabs: Tabs, known: Known, board: Invented) -> None:
    page = tabs.open(known.url, "#/jobs")
    expect(row(page, "Jobs, the newest first", RUNNING)).to_contain_text("running")
    with Unreloaded(page):
        board.finish("SUCCEEDED")
        expect(row(page, "Jobs, the newest first", RUNNING)).to_contain_text("succeeded")
        expect(page.locator("#live")).to_contain_text(f"{RUNNING} succeeded")


def test_a_running_job_shows_how_far_each_node_is(tabs: Tabs, known: Known, board: Invented) -> None:
    page = tabs.open(known.url, f"#/job/{RUNNING}")
    expect(page.get_by_text("12 of 40 images")).to_be_visible()
    expect(row(page, "Progress of each node", "n2")).to_contain_text("its container was lost")
    expect(page.get_by_text("n2 was lost, its images go to the others")).to_be_visible()
    with Unreloaded(page):
        board.done = 25
        expect(page.get_by_text("25 of 40 images")).to_be_visible()


def test_a_job_that_counts_something_else_than_images_is_shown_in_its_own_words(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, f"#/job/{COPIED}")
    report = page.get_by_role("region", name="Report")

    expect(report).to_contain_text("2 of 2 copies after 3 s")
    expect(report).to_contain_text("./program")
    expect(row(page, "Progress of each node", "n2")).to_contain_text("exit code 0")


def test_an_ended_job_shows_its_report_and_its_time_line(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, f"#/job/{ENDED}")
    report = page.get_by_role("region", name="Report")

    expect(report).to_contain_text("algorithm1")
    expect(report).to_contain_text("perf_history")
    expect(row(page, "What each node did", "127.0.1.11").first).to_contain_text("116")
    expect(report.get_by_role("img", name=re.compile("When each of"))).to_be_visible()
    expect(page.get_by_role("button", name="End this job")).to_be_hidden()


def test_a_failed_job_says_why_it_has_no_report(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, f"#/job/{FAILED}")

    expect(page.get_by_role("region", name="Report")).to_contain_text("succeeded has a report")
    expect(page.locator("main")).to_contain_text("no node has a fresh <perf_cpu>")


def test_why_each_node_got_its_share_opens_by_keyboard(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, f"#/job/{ENDED}")
    press_until(page, "Why each node got its share")
    page.keyboard.press("Enter")

    expect(page.get_by_role("table", name="Shares by the decision").get_by_role("rowheader")).to_have_text(
        ["alpha", "beta", "gamma"]
    )


def test_logs_are_shown_as_text(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, f"#/job/{ENDED}")
    press_until(page, "Logs")
    page.keyboard.press("Enter")

    expect(page.get_by_role("region", name="Log", exact=True)).to_contain_text("<b>3 of 40</b> pictures")
    expect(page.get_by_text("This is all of it.")).to_be_visible()


def test_a_job_is_ended_by_keyboard_after_a_question(tabs: Tabs, known: Known, board: Invented) -> None:
    page = tabs.open(known.url, f"#/job/{RUNNING}", TOKEN)
    expect(page.get_by_role("button", name="End this job")).to_be_visible()
    press_until(page, "End this job")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="End this job?")).to_be_visible()
    assert focused(page) == "Let it run"
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert board.ending is None

    press_until(page, "End this job")
    page.keyboard.press("Enter")
    press_until(page, "End it")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Being ended…")).to_be_visible()
    board.ending = Ending("done", f"{RUNNING} killed")
    board.finish("KILLED")
    expect(page.locator("main")).to_contain_text("killed")
    expect(page.get_by_role("button", name="End this job")).to_be_hidden()


def test_a_viewer_cannot_end_a_job(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, f"#/job/{RUNNING}", known.viewer)
    expect(page.get_by_text("12 of 40 images")).to_be_visible()

    expect(page.get_by_role("button", name="End this job")).to_be_hidden()
    expect(page.locator("[data-role]:visible")).to_have_count(0)


def test_a_path_is_asked_for_by_keyboard_and_shows_where_its_blocks_are(tabs: Tabs, known: Known) -> None:
    for number, name in enumerate(NODES, start=1):
        known.client.put_value("perf_cpu", name, number)
    page = tabs.open(known.url, "#/path")
    press_until(page, "Path")
    page.keyboard.type("/data/images")
    press_until(page, "Judged by")
    page.keyboard.type("perf_cpu")
    page.keyboard.press("Enter")

    expect(page.get_by_text("/data/images: 10 files, 10 blocks")).to_be_visible()
    expect(page.get_by_role("alert").filter(has_text="gone.jpg")).to_be_visible()
    expect(row(page, "What each node holds", "n1")).to_contain_text("/default-rack")
    expect(page.get_by_role("table", name=re.compile("Seconds per GB"))).to_contain_text("assumed")
    expect(page.get_by_role("table", name="The policies side by side").get_by_role("rowheader")).to_contain_text(
        ["algorithm1"]
    )
    expect(page).to_have_url(re.compile(r"#/path\?path=%2Fdata%2Fimages&capability=perf_cpu$"))


def test_without_a_capability_nothing_is_planned_and_the_page_says_so(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/path?path=%2Fdata%2Fimages")

    expect(page.locator("main")).to_contain_text("ame a capability, such as perf_cpu")


def test_what_is_not_there_is_one_sentence(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/path?path=%2Fnothing")
    tabs.expect(page, r"status of 404")
    expect(page.get_by_role("alert").filter(has_text="/nothing is not in HDFS")).to_be_visible()
    page.goto("/#/job/application_1_9")

    expect(page.get_by_role("alert").filter(has_text="application_1_9")).to_be_visible()


def test_the_pages_of_values_go_on_after_a_visit_elsewhere(tabs: Tabs, known: Known) -> None:
    """What a page started ends with it, and the next page starts its own."""
    page = tabs.open(known.url, "#/jobs")
    for place in ("#/cluster", "#/path", "#/data/load_1m", "#/jobs", "#/node/n1"):
        page.goto(f"/{place}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
    known.client.report("n1", Report("b", 2, "1.0", (ran("load_1m", "9.75"),)))

    expect(row(page, "Values of this node", "load_1m")).to_contain_text("9.75")
