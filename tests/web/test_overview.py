"""#/overview: whether all is well, what is free, what runs and what needs somebody, each seen at once."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from infosvc.wire.alerts.alert_client import AlertClient
from infosvc.wire.client import InfoClient
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import TaskNews, TaskProgress, TaskState
from tests.infosvc.conftest import TOKEN
from tests.web.browser import Tabs, Unreloaded, go, log_in
from tests.web.conftest import Known, tell
from tests.web.invented import Invented

LINES = """cells => cells.map(cell => {
    const text = document.createRange();
    text.selectNodeContents(cell);
    return Math.round(text.getBoundingClientRect().height / parseFloat(getComputedStyle(cell).lineHeight));
})"""
"""How many lines each cell has."""
BOXES = """() => [
    "section[aria-label='Needs attention'] li", "ul[aria-label='The cluster in numbers']", "section[aria-label=Nodes]",
].map(part => document.querySelector(part).getBoundingClientRect().toJSON())"""
"""Where the first trouble, the tiles and the map lie at the same moment: the tiles may grow at any."""


def expect_tile(page: Page, label: str, text: str | re.Pattern[str]) -> None:
    """A tile with this label says this, if not at once."""
    found = page.get_by_role("list", name="The cluster in numbers").get_by_role("link").filter(has_text=label)
    expect(found).to_contain_text(text, use_inner_text=True)


def before(page: Page, place: str, change: Callable[[Any], None]) -> None:
    """From the next answer of this place on, the page is told what `change` makes of it."""

    def answer(route: Route) -> None:
        answered = route.fetch()
        body = answered.json()
        change(body)
        route.fulfill(response=answered, json=body)

    page.route(re.compile(rf"/api/v1/{place}([?]|$)"), answer)


def look(page: Page) -> None:
    """At the overview, as somebody who may do everything."""
    go(page, "#/overview", "Overview")
    log_in(page, TOKEN)


def away(state: str, seconds: float) -> Callable[[Any], None]:
    """Nobody has heard of n2 for so long."""

    def change(body: Any) -> None:
        for node in body["nodes"]:
            if node["node_name"] == "n2":
                node.update(state=state, last_seen=time.time() - seconds)

    return change


def aged(**seconds: float) -> Callable[[Any], None]:
    """The tasks of these names were asked for so long ago, and come the oldest first."""

    def change(body: Any) -> None:
        for task in body["tasks"]:
            task["created_at"] = time.time() - seconds[task["name"]]
        body["tasks"].sort(key=lambda task: task["created_at"])

    return change


def put(client: InfoClient, name: str, *states: TaskState, node: str | None = None, reason: str = "") -> str:
    """A task that came into these states; its id."""
    task_id = client.submit_task(TaskSpec(("a",), name=name)).task_id
    for state in states:
        where = None if state is TaskState.QUEUED else node
        said = reason if state is states[-1] else None
        client.put_task_news(task_id, TaskNews(state, said, node_name=where, attempt=1))
    return task_id


def test_numbers_are_sums_over_the_nodes_that_can_be_counted_on(tabs: Tabs, known: Known) -> None:
    tell(known.client, "n1", 2, cpu_free=0.5, disk_free=0.5)
    tell(known.client, "n2", 2, cpu_free=1.0, disk_free=0.7)
    page = tabs.open(known.url, "#/overview", TOKEN)

    expect(page.get_by_text("12.0 of 16 cores idle")).to_be_visible()
    expect_tile(page, "CPU used", "25 %")
    expect_tile(page, "Memory used", "50 %")
    expect_tile(page, "Memory used", "16 GB of 32 GB idle")
    expect_tile(page, "Disks used", "1.2 TB of 2 TB free")
    with Unreloaded(page):
        tell(known.client, "n2", 3, cpu_free=0.0, disk_free=0.7)
        expect(page.get_by_text("4.0 of 16 cores idle")).to_be_visible()


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
    expect(needs.get_by_role("listitem")).to_contain_text(["Error", "Warning", "Warning"])
    with Unreloaded(page):
        idle = TaskProgress(1, running=True, idle_since=time.time() - 1355)
        lazy = known.client.submit_task(TaskSpec(("a",), name="lazy", vcores=4))
        known.client.put_task_progress(lazy.task_id, idle)
        expect(needs).to_contain_text("lazy has used none of its 4 cores for 23 min")
        expect(needs.get_by_role("listitem")).to_contain_text(["Error", "Warning", "Warning", "Note"])
        expect(page.get_by_role("region", name="Running")).to_contain_text("running, idle")
        known.client.put_task_progress(lazy.task_id, replace(idle, idle_since=None))
        expect(needs).not_to_contain_text("lazy has used")
    needs.get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Node n1")


def test_what_an_alert_is_on_for_needs_somebody(tabs: Tabs, known: Known) -> None:
    tell(known.client, "n1", 2, cpu_free=0.02, disk_free=0.5)
    alert = AlertClient(known.client).add("cpu_free_ratio < 0.05", 0, "https://127.0.0.1:9/s3cret")
    page = tabs.open(known.url, "#/overview", TOKEN)
    needs = page.get_by_role("region", name="Needs attention")
    trouble = needs.get_by_role("listitem").filter(has_text="n1: cpu_free_ratio < 0.05, for")
    expect(trouble).to_contain_text("cpu_free_ratio 0.02")
    expect(trouble).to_contain_text(f"{alert.alert_id}, told to 127.0.0.1:9")
    expect(needs).to_contain_text("1 message of the alert cpu_free_ratio < 0.05 wait for 127.0.0.1:9: no answer")
    expect(needs).not_to_contain_text("s3cret")
    with Unreloaded(page):
        AlertClient(known.client).remove(alert.alert_id)
        expect(trouble).to_have_count(0)


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


@pytest.mark.parametrize(("state", "word", "weight"), [("lost", "lost", "Error"), ("stale", "silent", "Warning")])
def test_a_node_that_is_away_says_since_when_and_what_ran_there(
    tabs: Tabs, known: Known, state: str, word: str, weight: str
) -> None:
    for name in ("unet", "mnist"):
        put(known.client, name, TaskState.QUEUED, TaskState.RUNNING, node="n2")
    put(known.client, "resnet", TaskState.QUEUED, TaskState.RUNNING, node="n1")
    page = tabs.open(known.url)
    before(page, "nodes", away(state, 635))
    look(page)

    trouble = page.get_by_role("region", name="Needs attention").get_by_role("listitem").filter(has_text="n2")
    expect(trouble).to_contain_text(f"{weight} n2 is {word}: its agent was last heard 11 min ago")
    expect(trouble).to_contain_text("mnist and unet ran there; nodewise doctor on the machine of the operator")
    expect(trouble.locator("code")).to_have_text("nodewise doctor")
    expect(trouble).not_to_contain_text("`")
    work = page.get_by_role("region", name="Running").get_by_role("row")
    expect(work.filter(has_text="mnist").get_by_role("cell").last).to_have_text(f"n2 is {word}")
    expect(work.filter(has_text="resnet").get_by_role("cell").last).to_have_text("")
    expect_tile(page, "Tasks running", f"Tasks running 1 2 on a {word} node, 0 waiting")


def test_since_when_a_node_is_silent_is_told_also_of_one_that_an_event_names(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url, "#/overview", TOKEN)
    needs = page.get_by_role("region", name="Needs attention")
    expect(needs).to_contain_text("n3 is silent: its agent was never heard")
    with Unreloaded(page):
        known.client.put_node("n4", "127.0.0.1:9")
        expect(needs).to_contain_text("n4 is silent: its agent was never heard")


def test_tasks_that_wait_for_long_say_what_the_first_in_line_waits_for(
    tabs: Tabs, known: Known, board: Invented
) -> None:
    tell(known.client, "n1", 2, cpu_free=0.5, disk_free=0.5)
    ids = {name: put(known.client, name, TaskState.QUEUED) for name in ("early", "late", "new")}
    reasons = {"late": "its turn: 1 before it", "early": "room in the queue root.default"}
    own = board.queues.waiting[0]
    line = [
        replace(own, task_id=ids[name], name=name, position=place, waits_for=reasons[name])
        for place, name in ((2, "late"), (1, "early"))
    ]
    board.queues = replace(board.queues, waiting=(board.queues.waiting[0], *line))
    page = tabs.open(known.url)
    before(page, "tasks", aged(early=755, late=725, new=5))
    look(page)

    told = "2 tasks wait, the first for 13 min: room in the queue root.default, though 4.0 cores are idle"
    trouble = page.get_by_role("region", name="Needs attention").get_by_role("listitem").filter(has_text="tasks wait")
    expect(trouble).to_contain_text(f"Warning {told}")
    trouble.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Queue")


def test_queued_tasks_stand_in_yarns_order_and_say_their_place_and_what_they_wait_for(
    tabs: Tabs, known: Known, board: Invented
) -> None:
    ids = {name: put(known.client, name, TaskState.QUEUED) for name in ("third", "unsent", "second", "first")}
    put(known.client, "mnist", TaskState.QUEUED, TaskState.RUNNING, node="n1")
    begin, later, unknown = board.queues.waiting[0].start, None, "not known: too few have ended"
    own = replace(board.queues.waiting[0], waits_for="its turn")
    line = [
        replace(own, task_id=ids[name], position=place, start=start, no_start=None if start else unknown)
        for place, (name, start) in enumerate((("first", begin), ("second", begin), ("third", later)), start=1)
    ]
    board.queues = replace(board.queues, waiting=tuple(line))
    page = tabs.open(known.url)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/queue") else None)
    page.clock.install()
    begun = time.monotonic()
    look(page)
    rows = page.get_by_role("region", name="Running").locator("tbody tr").filter(has_not_text="application_")

    expect(rows.get_by_role("link")).to_have_text(["mnist", "first", "second", "third", "unsent"])
    told = ["", *[f"place {at} of 3, begins in 2 to 9 min, waits for its turn" for at in (1, 2)]]
    told += ["place 3 of 3, begin not known, waits for its turn", ""]
    expect(rows.locator("td:last-child")).to_have_text(told)
    assert 1 <= len(asked) <= 1 + (time.monotonic() - begun) / 5


def test_where_tasks_wait_in_two_queues_each_row_names_its_own(tabs: Tabs, known: Known, board: Invented) -> None:
    own = board.queues.waiting[0]
    line = [
        replace(own, task_id=put(known.client, name, TaskState.QUEUED), name=name, queue=queue, position=position)
        for name, queue, position in (("b1", "root.b", 1), ("a2", "root.a", 2), ("a1", "root.a", 1))
    ]
    board.queues = replace(board.queues, waiting=tuple(line))
    page = tabs.open(known.url)
    look(page)

    rows = page.get_by_role("region", name="Running").locator("tbody tr").filter(has_text="place")
    expect(rows.get_by_role("link")).to_have_text(["a1", "a2", "b1"])
    for row, place in zip(rows.all(), ("1 in root.a", "2 in root.a", "1 in root.b"), strict=True):
        expect(row.locator("td:last-child")).to_contain_text(f"place {place}, begins")


@pytest.mark.parametrize("status", [403, 404, 503])
def test_without_the_queue_the_oldest_is_told(tabs: Tabs, known: Known, status: int) -> None:
    for name in ("early", "late"):
        put(known.client, name, TaskState.QUEUED)
    page = tabs.open(known.url)
    tabs.expect(page, rf"status of {status}")
    before(page, "tasks", aged(early=755, late=725))
    error = {"error": {"code": "none", "message": "It is not there."}}
    page.route("**/api/v1/queue", lambda route: route.fulfill(status=status, json=error))
    with page.expect_response("**/api/v1/queue"):
        look(page)

    trouble = page.get_by_role("region", name="Needs attention").get_by_role("listitem").filter(has_text="early")
    expect(trouble).to_contain_text("Note early has no node yet, 13 min after it was asked for, as 1 other")
    expect(trouble.get_by_role("link")).to_have_attribute("href", re.compile("^#/task/"))
    expect(page.get_by_role("alert").filter(visible=True)).to_have_count(0)


def test_what_needs_somebody_is_on_the_first_screen_of_a_telephone(tabs: Tabs, known: Known) -> None:
    tell(known.client, "n1", 2, cpu_free=0.5, disk_free=0.01)
    page = tabs.open(known.url, "#/overview", TOKEN)
    expect(page.get_by_role("region", name="Needs attention").get_by_role("listitem").first).to_be_visible()
    attention, tiles, nodes = page.evaluate(BOXES)
    assert attention["x"] > nodes["x"] + nodes["width"] and attention["y"] > tiles["y"] + tiles["height"]

    page.set_viewport_size({"width": 390, "height": 844})
    attention, tiles, nodes = page.evaluate(BOXES)
    assert attention["y"] + attention["height"] < tiles["y"] < nodes["y"]
    assert attention["y"] + attention["height"] < 844


def test_a_node_with_an_error_of_its_own_has_the_mark_of_it_in_the_map(tabs: Tabs, known: Known) -> None:
    tell(known.client, "n1", 2, cpu_free=0.5, disk_free=0.007)
    tell(known.client, "n2", 2, cpu_free=0.5, disk_free=0.05)
    page = tabs.open(known.url, "#/overview", TOKEN)
    cells = page.get_by_role("region", name="Nodes").get_by_role("link")

    expect(cells.filter(has_text="n1")).to_have_text(re.compile(r"^\s*n1\s+50 %\s+disk 0.7 % free\s*$"))
    expect(cells.filter(has_text="n1")).to_have_class(re.compile(r"\bstep-3 is-failed\b"))
    expect(cells.filter(has_text="n2")).to_have_text(re.compile(r"^\s*n2\s+50 %\s*$"))
    expect(cells.filter(has_text="n2")).not_to_have_class(re.compile("is-failed"))


@pytest.mark.parametrize("width", [390, 1000, 1280])
def test_what_ended_is_told_on_one_line_each(tabs: Tabs, known: Known, width: int) -> None:
    reason = "no space left on device: /data/1 of node-02 has 4.0 GB free, and the task asks for 12 GB of it"
    put(known.client, "embed-0", TaskState.QUEUED, TaskState.RUNNING, TaskState.FAILED, node="node-02", reason=reason)
    page = tabs.open(known.url, "#/overview", TOKEN)
    page.set_viewport_size({"width": width, "height": 844})
    row = page.get_by_role("region", name="Ended last").locator("tbody tr")

    expect(row).to_contain_text("embed-0")
    assert set(row.locator("th, td").evaluate_all(LINES)) == {1}
    expect(row.get_by_text(reason)).to_have_attribute("title", reason)
    said = row.get_by_role("cell").last.bounding_box()
    assert said and said["width"] > 200
    expect(page.get_by_role("region", name="Needs attention")).to_contain_text("its log says more")


def test_logs_are_to_say_why_where_no_reason_is_known(tabs: Tabs, known: Known) -> None:
    put(known.client, "embed-0", TaskState.FAILED)
    page = tabs.open(known.url, "#/overview", TOKEN)
    needs = page.get_by_role("region", name="Needs attention")
    expect(needs).to_contain_text("at last embed-0: no reason is known")
    expect(needs).to_contain_text("its log says why")
    with Unreloaded(page):
        put(known.client, "embed-1", TaskState.FAILED)
        expect(needs).to_contain_text("their logs say why")


def test_tiles_count_nodes_of_all_and_what_yarn_remembers(tabs: Tabs, known: Known, board: Invented) -> None:
    page = tabs.open(known.url, "#/overview", TOKEN)

    expect_tile(page, "Nodes ready", "Nodes ready 2 of 3 1 silent")
    expect_tile(page, "Jobs running", "Jobs running 1 YARN remembers 4")
    with Unreloaded(page):
        board.jobs = {}  # and not cleared: an answer may be on its way through it
        expect(page.get_by_text("YARN remembers")).to_have_count(0)
        expect_tile(page, "Jobs running", re.compile(r"^\s*Jobs running\s+0\s*$"))
