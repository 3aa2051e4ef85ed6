"""#/path, #/jobs and #/job/ID over a real Hadoop, as `nodewise serve` answers them."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from infosvc.wire.client import InfoClient
from infosvc.wire.records import Role, State
from infosvc.wire.tasks import TaskState
from nodewise import tasks
from nodewise.submitting import SubmitterProcess
from tests.cluster.site import ANSWER_SECONDS, BROKEN, PICTURES, Site, succeed, until
from tests.cluster.small_network import small_network
from tests.cluster.standing import NODES, Standing
from tests.web.browser import WIDTH, Tabs, Unreloaded, accessible, press_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

SHOTS = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
ASKED = "NODEWISE_SCREENSHOTS"  # set it to anything, and docs/screenshots is made anew
SLOW_MS = 120_000  # a JVM starts, YARN gives containers, engines load
GIVEN = ("--input", "hdfs:///data/images", "--capability", "perf_even", "--batch", "8", "--json")


@dataclass(frozen=True)
class Dashboard:
    """A site, its page, and the token of who may do everything there."""

    site: Site
    token: str

    def submit(self, output: str, *words: str) -> str:
        """The id of a job that is on its way, or done with --wait."""
        said = json.loads(succeed(self.site.nodewise("job", "submit", "--output", output, *GIVEN, *words)))
        return str(said.get("application_id") or said["job_id"])

    def known(self, name: str) -> int:
        """How many nodes have a fresh value."""
        return sum(datum.state is State.FRESH for datum in self.site.client().data(name))


@pytest.fixture(scope="module")
def dashboard(standing: Standing) -> Dashboard:
    """The cluster that tests/cluster uses too, with its service, agents and pictures."""
    site = standing.site()
    return Dashboard(site, site.token_file.read_text().strip())


def test_a_path_shows_the_holders_of_its_blocks(tabs: Tabs, dashboard: Dashboard) -> None:
    page = tabs.open(dashboard.site.url, "#/path?path=%2Fdata%2Fimages")

    expect(page.get_by_text(f"/data/images: {PICTURES + len(BROKEN)} files")).to_be_visible(timeout=SLOW_MS)
    held = page.get_by_role("table", name="What each node holds").get_by_role("rowheader")
    expect(held).to_have_text(sorted(dashboard.site.cluster.nodes))
    accessible(page)


def test_a_job_is_followed_to_its_report(tabs: Tabs, dashboard: Dashboard) -> None:
    page = tabs.open(dashboard.site.url, "#/jobs")
    job_id = dashboard.submit("hdfs:///out/dashboard/seen", *small_network(dashboard.site.cluster.home))
    page.get_by_role("link", name=job_id).click(timeout=SLOW_MS)
    with Unreloaded(page):
        report = page.get_by_role("region", name="Report")
        expect(report).to_contain_text("perf_even", timeout=2 * SLOW_MS)
    each = report.get_by_role("table", name="What each node did").get_by_role("rowheader")
    expect(each).to_have_text(sorted(dashboard.site.cluster.nodes))
    page.locator("summary").filter(has_text="Why each node got its share").click()
    shares = page.get_by_role("table", name="Shares by the decision").get_by_role("rowheader")
    expect(shares).to_have_text(sorted(dashboard.site.cluster.nodes))
    page.locator("summary").filter(has_text="Logs").click()

    expect(page.get_by_role("region", name="Log", exact=True)).not_to_be_empty()
    accessible(page)


def test_a_job_is_ended_by_keyboard(tabs: Tabs, dashboard: Dashboard) -> None:
    # One that does not end of itself meanwhile.
    job_id = json.loads(succeed(dashboard.site.nodewise("job", "run", "--json", "--", "sleep", "600")))["job_id"]
    page = tabs.open(dashboard.site.url, f"#/job/{job_id}", dashboard.token)
    expect(page.get_by_role("button", name="End this job")).to_be_visible()
    press_until(page, "End this job")
    page.keyboard.press("Enter")
    press_until(page, "End it")
    page.keyboard.press("Enter")

    expect(page.get_by_text(f"{job_id} killed")).to_be_visible(timeout=SLOW_MS)
    listed = json.loads(succeed(dashboard.site.nodewise("job", "list", "--json")))
    assert {one["application_id"]: one["final"] for one in listed}[job_id] == "KILLED"


pictured = pytest.mark.skipif(
    ASKED not in os.environ, reason=f"pictures for the documentation are taken when {ASKED} is set"
)


def take(page: Page, name: str, place: str, complete: str | re.Pattern[str], height: int, top: str) -> None:
    """The picture `name` of a page below its heading `top`, once it shows what makes it `complete`."""
    page.set_viewport_size({"width": WIDTH, "height": height})
    page.goto(f"/{place}")
    expect(page.locator("main")).to_contain_text(complete, timeout=SLOW_MS)
    expect(page.get_by_text(re.compile("Loading|Asking YARN|Listing|Reading"))).to_have_count(0, timeout=SLOW_MS)
    page.get_by_role("heading", name=top, exact=True).evaluate("heading => heading.scrollIntoView()")
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}.png", animations="disabled")


@pictured
def test_pictures_for_the_documentation(tabs: Tabs, dashboard: Dashboard, tmp_path: Path) -> None:
    nodewise = dashboard.site.nodewise
    node = dashboard.site.cluster.nodes[0]
    stopped = [slot.data_name for slot in dashboard.site.client().slots(node).slots if not slot.running]
    for name in ("access_cost", *stopped):
        succeed(nodewise("slot", "start", name))
    succeed(nodewise("images", "make", str(tmp_path), "-n", "400"))
    succeed(nodewise("images", "load", str(tmp_path), "hdfs:///data/many"))
    given = ("--input", "hdfs:///data/many", "--policy", "maxflow", "--batch", "32", "--wait")
    dashboard.submit("hdfs:///out/dashboard/before", *given)
    until(lambda: dashboard.known("access_cost") == 1 and dashboard.known("perf_history") == NODES, 300)
    job_id = dashboard.submit("hdfs:///out/dashboard/pictured", *given, "--capability", "perf_history")
    page = tabs.open(dashboard.site.url, token=dashboard.token)
    path = "#/path?path=%2Fdata%2Fmany&capability=perf_history"
    take(page, "cluster", "#/cluster?name=load_1m", f"{NODES} fresh", 420, "Cluster")
    take(page, "node", f"#/node/{node}", "ready: its agent reports", 800, f"Node {node}")
    take(page, "data", "#/data", "perf_history.spread", 1000, "Who makes what from what")
    take(page, "name", "#/data/memory_available_bytes", "half of them", 720, "memory_available_bytes")
    take(page, "path", path, "algorithm1", 1350, "HDFS path")
    take(page, "job", f"#/job/{job_id}", "maxflow", 900, f"Job {job_id}")


TRAINING = """
import math, random, sys, time

rate = float(sys.argv[1])
for step in range(1, 241):
    time.sleep(0.25)
    loss = 2.3 * math.exp(-rate * step) + 0.1 + random.random() / 25
    print(f"nodewise: loss={loss:.4f} accuracy={1 - loss / 2.5:.4f} step={step}")
    if step % 40 == 0:
        print(f"\\x1b[32mepoch {step // 40}\\x1b[0m  loss {loss:.3f}", flush=True)
"""


@pictured
def test_pictures_of_tasks_for_the_documentation(tabs: Tabs, dashboard: Dashboard, tmp_path: Path) -> None:
    site = dashboard.site
    SubmitterProcess(site.cluster.home, site.url, site.token_file, None).start()
    client = InfoClient(site.url, site.client().create_token("maria", Role.USER)[1], ANSWER_SECONDS)
    (tmp_path / "train.py").write_text(TRAINING)

    def submit(name: str, *argv: str, memory_mb: int = 256) -> str:
        return tasks.submit(argv, folder=tmp_path, client=client, name=name, memory_mb=memory_mb).task_id

    def has(state: TaskState, *ids: str) -> bool:
        return all(client.task(task_id).state is state for task_id in ids)

    one, other = (submit(f"digits {rate}", "python3", "train.py", rate) for rate in ("0.02", "0.01"))
    submit("labels", "python3", "labels.py")
    quick = [submit(f"look {at}", "sleep", "4") for at in range(9)]  # so many tell when others begin
    until(lambda: has(TaskState.SUCCEEDED, one, other, *quick), 400)
    sweep = [submit(f"sweep {at}", "python3", "train.py", f"0.00{at}", memory_mb=2000) for at in range(1, 9)]
    until(lambda: has(TaskState.RUNNING, *sweep[:4]))
    page = tabs.open(site.url, token=dashboard.token)
    take(page, "overview", "#/overview", re.compile(r"place \d of"), 900, "Overview")
    take(page, "tasks", "#/tasks", re.compile(r"place \d of"), 860, "Tasks")
    take(page, "queue", "#/queue", "sweep 8", 760, "Queue")
    take(page, "new", "#/tasks/new", "Program", 900, "New task")
    take(page, "task", f"#/task/{one}", "epoch 6", 1000, "digits 0.02")
    take(page, "compare", f"#/compare?task={one}&task={other}", "accuracy", 800, "Compare tasks")
