"""What holds for every page: anybody can use it, in light and dark; and it obeys its own policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from infosvc.tasks.lifecycle import new_id
from infosvc.wire.records import Producer
from infosvc.wire.task_spec import TaskSpec
from infosvc.wire.tasks import TaskNews, TaskState
from tests.infosvc.conftest import TOKEN
from tests.web.browser import Tabs, accessible
from tests.web.conftest import Known
from tests.web.invented import ENDED, NODES, RUNNING

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")

TASK, OTHER = (new_id("admin", key) for key in ("mnist", "unet"))
PATH = "#/path?path=%2Fdata%2Fimages&capability=perf_cpu"
PLACES = {
    "overview": ("#/overview", "at last unet"),
    "cluster": ("#/cluster", "2 fresh"),
    "node": ("#/node/n2", "ten failures in a row"),
    "data": ("#/data", "perf_cpu"),
    "data_name": ("#/data/cpu_free_ratio", "93.1 %"),
    "path": (PATH, "algorithm1"),
    "tasks": ("#/tasks", "it needed more memory"),
    "task": (f"#/task/{TASK}", "few cores"),
    "new_task": ("#/tasks/new", "as one types it"),
    "compare": (f"#/compare?task={TASK}&task={OTHER}", "What differs"),
    "jobs": ("#/jobs", RUNNING),
    "pools": ("#/pools", "12 of 40"),
    "queue": ("#/queue", "in 2 to 9 min"),
    "running": (f"#/job/{RUNNING}", "12 of 40"),
    "ended": (f"#/job/{ENDED}", "perf_history"),
    "nowhere": ("#/nowhere", "here is no page"),
}
"""Address of each page, and what stands on it once it is complete."""


def _register(page: Page) -> None:
    page.goto("/#/data")
    page.get_by_role("button", name="Register a name").click()
    expect(page.get_by_role("form", name="Register a data name")).to_be_visible()


def _edit(page: Page) -> None:
    page.goto("/#/data/load_1m")
    page.get_by_role("button", name="Edit").click()
    expect(page.get_by_role("form", name="Edit load_1m")).to_be_visible()


def _delete(page: Page) -> None:
    page.goto("/#/data/load_1m")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("button", name="Keep it")).to_be_visible()


def _end(page: Page) -> None:
    page.goto(f"/#/job/{RUNNING}")
    page.get_by_role("button", name="End this job").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def _opened(page: Page) -> None:
    page.goto(f"/#/job/{ENDED}")
    for summary in ("Why each node got its share", "Logs", "The same as a table"):
        page.locator("summary").filter(has_text=summary).click()
    expect(page.get_by_role("table", name="Shares by the decision")).to_be_visible()


def _task(page: Page) -> None:
    page.goto(f"/#/task/{TASK}")
    for summary in ("Why there", "What was asked for"):
        page.locator("summary").filter(has_text=summary).click()
    expect(page.get_by_role("table", name="The nodes as they were then")).to_be_visible()
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("dialog")).to_be_visible()


OPENED: dict[str, Callable[[Page], None]] = {
    "register": _register,
    "edit": _edit,
    "delete": _delete,
    "end": _end,
    "opened": _opened,
    "task": _task,
}
"""What only shows after something was pressed."""


TWO_FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def in_both_schemes(page: Page) -> None:
    """No violation in light, nor in dark: a page follows the scheme, and loading it anew would cost much more."""
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("scheme => matchMedia(`(prefers-color-scheme: ${scheme})`).matches", scheme)
        accessible(page)


def fits_a_narrow_window(page: Page) -> None:
    """Nothing lies beyond the right edge of a telephone's window."""
    page.set_viewport_size({"width": 360, "height": 700})
    page.evaluate(TWO_FRAMES)  # by then pictures have followed
    assert page.evaluate("() => document.documentElement.clientWidth") <= 360
    assert page.evaluate("() => document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.fixture
def judged(known: Known) -> Known:
    """With a capability for each node, so that the page of a path has plans, and with tasks."""
    for number, name in enumerate(NODES, start=1):
        known.client.put_value("perf_cpu", name, number)
    for task_id, name in ((TASK, "mnist"), (OTHER, "unet")):
        spec = TaskSpec(("python3", "train.py", name), name=name, output="hdfs:///out")
        assert known.client.submit_task(spec, idempotency_key=name).task_id == task_id
        for state in (TaskState.QUEUED, TaskState.RUNNING):
            known.client.put_task_news(task_id, TaskNews(state, node_name="n1", attempt=1))
    known.client.put_task_news(OTHER, TaskNews(TaskState.FAILED, reason="it needed more memory"))
    known.client.put_task_news(TASK, TaskNews(TaskState.SUCCEEDED, exit_code=0))
    return known


@pytest.mark.parametrize("name", PLACES)
def test_every_page_is_accessible_to_everybody_and_scrolls_no_narrow_window_sideways(
    tabs: Tabs, judged: Known, name: str
) -> None:
    place, complete = PLACES[name]
    page = tabs.open(judged.url, place, TOKEN)
    expect(page.locator("main")).to_contain_text(complete)

    in_both_schemes(page)
    fits_a_narrow_window(page)
    expect(page.locator("main")).to_contain_text(complete)


@pytest.mark.parametrize("name", OPENED)
def test_so_is_what_opens_on_it(tabs: Tabs, judged: Known, name: str) -> None:
    page = tabs.open(judged.url, token=TOKEN)
    OPENED[name](page)

    in_both_schemes(page)


def test_so_is_the_dialog_to_log_in_also_after_a_refusal(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url)
    tabs.expect(page, r"status of 401")
    page.get_by_role("button", name="Log in").click()
    dialog = page.get_by_role("dialog", name="Log in")
    dialog.get_by_label("Access token").fill("nw_admin_a-wrong-guess-of-a-token")
    dialog.get_by_role("button", name="Log in").click()
    expect(dialog.get_by_role("alert")).to_be_visible()

    in_both_schemes(page)


def test_light_and_dark_differ_and_the_page_says_that_it_has_both(tabs: Tabs, known: Known) -> None:
    background = "() => getComputedStyle(document.body).backgroundColor"
    light, dark = (tabs.open(known.url, scheme=scheme).evaluate(background) for scheme in SCHEMES)

    assert light != dark


@pytest.mark.parametrize("place", ["#/cluster?name={}", "#/node/{}", "#/data", "#/data/{}"])
def test_neither_do_the_longest_names(tabs: Tabs, judged: Known, place: str) -> None:
    name = "n" * 128
    judged.client.put_producer(Producer(name, "x", 5.0, unit="u" * 64, emits=("m" * 128,)))
    judged.client.put_node(name, "127.0.0.1:9")
    judged.client.put_value(name, name, "v" * 300)
    page = tabs.open(judged.url, place.format(name), TOKEN)
    expect(page.locator("main")).to_contain_text(name)
    expect(page.get_by_text("Loading")).to_have_count(0)

    fits_a_narrow_window(page)


def test_a_script_that_gets_onto_the_page_all_the_same_does_not_run(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url)
    tabs.expect(page, r"Content Security Policy")
    page.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "window.came = true";
        document.body.append(script);
        document.body.setAttribute("onclick", "window.came = true");
        document.body.click();
    }""")

    assert page.evaluate("() => window.came") is None


def test_the_policy_allows_nothing_but_the_service_itself(tabs: Tabs, known: Known) -> None:
    page = tabs.open(known.url)
    answer = page.context.request.get("/")
    policy = answer.headers["content-security-policy"]

    assert answer.ok
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and "http:" not in policy and "*" not in policy
