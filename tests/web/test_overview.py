"""#/overview: whether all is well, what is free, what runs and what needs somebody, each seen at once."""

from __future__ import annotations

import time
from dataclasses import replace

from playwright.sync_api import Page, Route, expect

from infosvc.wire.client import InfoClient
from infosvc.wire.records import Producer, Report
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import TaskNews, TaskProgress, TaskState
from tests.infosvc.conftest import TOKEN
from tests.web.browser import Tabs, Unreloaded, go, log_in
from tests.web.conftest import Known, ran

UNITS = {
    "cpu_count": "cpus",
    "memory_total_bytes": "bytes",
    "memory_available_bytes": "bytes",
    "disk_total_bytes": "bytes",
    "disk_free_bytes": "bytes",
}


def tell(client: InfoClient, node: str, batch: int, cpu_free: float, disk_free: float) -> None:
    """What a node of 8 cores, 16 GB and 1 TB reports."""
    for name, unit in UNITS.items():
        client.put_producer(Producer(name, "scripts/any.sh", 2.0, unit=unit, ttl=600))
        client.put_slot(node, name, True)
    values = (8, 16e9, 8e9, 1e12, 1e12 * disk_free)
    runs = [ran(name, str(value)) for name, value in zip(UNITS, values, strict=True)]
    client.report(node, Report("b", batch, "1.0", (ran("cpu_free_ratio", str(cpu_free)), *runs)))


def tile(page: Page, label: str) -> str:
    """What a tile says, once it is there."""
    found = page.get_by_role("list", name="The cluster in numbers").get_by_role("link").filter(has_text=label)
    expect(found).to_be_visible()
    return found.inner_text().replace("\n", " ")


def test_numbers_are_sums_over_the_nodes_that_can_be_counted_on(tabs: Tabs, known: Known) -> None:
    tell(known.client, "n1", 2, cpu_free=0.5, disk_free=0.5)
    tell(known.client, "n2", 2, cpu_free=1.0, disk_free=0.7)
    page = tabs.open(known.url, "#/overview", TOKEN)

    expect(page.get_by_text("12.0 of 16 cores free")).to_be_visible()
    assert "25 %" in tile(page, "CPU used")
    assert "50 %" in tile(page, "Memory used")
    assert "1.2 TB of 2 TB free" in tile(page, "Disks used")
    with Unreloaded(page):
        tell(known.client, "n2", 3, cpu_free=0.0, disk_free=0.7)
        expect(page.get_by_text("4.0 of 16 cores free")).to_be_visible()


def test_a_tile_has_the_last_hour_as_a_small_line(tabs: Tabs, known: Known) -> None:
    tell(known.client, "n1", 2, cpu_free=0.25, disk_free=0.5)
    steps = 120
    page = tabs.open(known.url)  # and what it heard before this test began is of no account
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url.partition("/api/v1")[2])
        hour = known.client.cluster_hour("cpu_free_ratio", "cpu_count").to_json()
        numbers = [None] * (steps - 40) + [0.5] * 39 + [hour["numbers"][-1]]
        route.fulfill(json=hour | {"numbers": numbers})

    page.route("**/data/cpu_free_ratio/*/hour*", answer)
    go(page, "#/overview", "Overview")
    log_in(page, TOKEN)
    line = page.get_by_role("img", name="Last hour: from 50 % to 75 %")
    expect(line).to_be_visible()
    assert asked[0] == "/data/cpu_free_ratio/*/hour?of=cpu_count"
    assert (line.locator("path").get_attribute("d") or "").count("L") == 39


def test_what_needs_somebody_stands_first_and_leads_to_its_page(tabs: Tabs, known: Known) -> None:
    tell(known.client, "n1", 2, cpu_free=0.5, disk_free=0.01)
    task = known.client.submit_task(TaskSpec(("a",), name="mnist"))
    page = tabs.open(known.url, "#/overview", TOKEN)
    needs = page.get_by_role("region", name="Needs attention")
    expect(needs).to_contain_text("n1 has 10 GB of its disk left, 1 %")
    with Unreloaded(page):
        known.client.put_task_news(task.task_id, TaskNews(TaskState.FAILED, reason="exit code 3"))
        expect(needs).to_contain_text("1 task failed in 24 hours, at last mnist: exit code 3")
    expect(needs.get_by_role("listitem")).to_contain_text(["Error", "Warning", "Note"])
    with Unreloaded(page):
        idle = TaskProgress(1, running=True, idle_since=time.time() - 1355)
        lazy = known.client.submit_task(TaskSpec(("a",), name="lazy", vcores=4))
        known.client.put_task_progress(lazy.task_id, idle)
        expect(needs).to_contain_text("lazy has used none of its 4 cores for 23 min")
        expect(page.get_by_role("region", name="Running")).to_contain_text("running, idle")
        known.client.put_task_progress(lazy.task_id, replace(idle, idle_since=None))
        expect(needs).not_to_contain_text("lazy has used")
    needs.get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Node n1")


def test_the_map_tells_what_runs_where(tabs: Tabs, known: Known) -> None:
    task = known.client.submit_task(TaskSpec(("a",), name="mnist"))
    for state in (TaskState.QUEUED, TaskState.RUNNING):
        known.client.put_task_news(task.task_id, TaskNews(state, node_name="n2", attempt=1))
    page = tabs.open(known.url, "#/overview", TOKEN)

    expect(page.get_by_role("region", name="Nodes").get_by_role("link").filter(has_text="n2")).to_contain_text("1 task")
    expect(page.get_by_role("region", name="Running").get_by_role("link", name="mnist")).to_be_visible()


def test_who_may_not_see_tasks_sees_the_cluster(tabs: Tabs, known: Known) -> None:
    known.client.submit_task(TaskSpec(("a",), name="mnist"))
    page = tabs.open(known.url, "#/overview", known.viewer)

    expect(page.get_by_role("region", name="Nodes").get_by_role("link").filter(has_text="n1")).to_be_visible()
    expect(page.get_by_role("region", name="Needs attention")).to_contain_text("n3 is silent")
    expect(page.locator("main")).not_to_contain_text("mnist")
    expect(page.get_by_text("Tasks running")).to_have_count(0)
