"""What the pages of a task and of a node say of a task that waits, and of one whose node is silent."""

from __future__ import annotations

from dataclasses import replace

from playwright.sync_api import Page, expect

from infosvc.wire.client import InfoClient
from infosvc.wire.records import Report
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import Task, TaskNews, TaskState
from tests.infosvc.conftest import TOKEN
from tests.web.browser import Tabs, Unreloaded, accessible
from tests.web.conftest import Known, ran
from tests.web.invented import Invented


def tell(client: InfoClient, task: Task, state: TaskState, node: str | None = None) -> None:
    client.put_task_news(task.task_id, TaskNews(state, node_name=node, attempt=1 if node else None))


def begin_task(client: InfoClient, node: str) -> Task:
    task = client.submit_task(TaskSpec(("a",), name="mnist"))
    tell(client, task, TaskState.QUEUED)
    tell(client, task, TaskState.RUNNING, node)
    return task


def open_task(tabs: Tabs, known: Known, task: Task) -> Page:
    return tabs.open(known.url, f"#/task/{task.task_id}", TOKEN)


def test_a_queued_task_says_what_it_waits_for_and_when_it_begins(tabs: Tabs, known: Known, board: Invented) -> None:
    task = known.client.submit_task(TaskSpec(("a",), name="mnist"))
    first, other, last = board.queues.waiting
    board.queues = replace(board.queues, waiting=(replace(first, task_id=task.task_id), other, last))
    tell(known.client, task, TaskState.QUEUED)
    page = open_task(tabs, known, task)
    waits = page.get_by_label("What it waits for")

    expect(waits).to_contain_text("room for application masters in root.default")
    expect(waits).to_contain_text("in 2 to 9 min")
    expect(waits).to_contain_text("place 1 of 3 in root.default")
    accessible(page)
    with Unreloaded(page):
        tell(known.client, task, TaskState.RUNNING, "n1")
        expect(waits).to_be_hidden()


def test_a_task_that_yarn_does_not_know_yet_waits_for_nothing_there(tabs: Tabs, known: Known) -> None:
    task = known.client.submit_task(TaskSpec(("a",), name="mnist"))
    tell(known.client, task, TaskState.QUEUED)
    page = open_task(tabs, known, task)
    with page.expect_response("**/queue"):
        expect(page.locator(".headline")).to_contain_text("queued")

    expect(page.get_by_label("What it waits for")).to_be_hidden()


def test_a_running_task_whose_node_is_silent_is_in_doubt_until_the_node_is_heard(tabs: Tabs, known: Known) -> None:
    task = begin_task(known.client, "n3")
    page = open_task(tabs, known, task)
    doubt = page.get_by_role("status").filter(has_text="n3 is silent: its agent has not reported yet")

    expect(doubt).to_be_visible()
    accessible(page)
    with Unreloaded(page):
        known.client.report("n3", Report("b", 1, "1.0", (ran("cpu_free_ratio", "0.5"),)))
        expect(doubt).to_have_count(0)
    tell(known.client, task, TaskState.SUCCEEDED)
    expect(page.locator(".headline")).to_contain_text("succeeded")


def test_a_node_shows_what_runs_on_it_to_whom_may_see_it(tabs: Tabs, known: Known) -> None:
    task = begin_task(known.client, "n1")
    elsewhere = begin_task(known.client, "n2")
    page = tabs.open(known.url, "#/node/n1", TOKEN)
    here = page.get_by_role("region", name="Tasks that run here")

    expect(here.locator(f'a[href="#/task/{task.task_id}"]')).to_be_visible()
    expect(here.locator(f'a[href="#/task/{elsewhere.task_id}"]')).to_have_count(0)
    accessible(page)
    with Unreloaded(page):
        tell(known.client, task, TaskState.SUCCEEDED)
        expect(here).to_have_count(0)
    tell(known.client, elsewhere, TaskState.FAILED)
    reader = tabs.open(known.url, "#/node/n1", known.viewer)
    expect(reader.get_by_role("table", name="Values of this node")).to_be_visible()
    expect(reader.get_by_role("region", name="Tasks that run here")).to_have_count(0)
