"""#/path, #/jobs and #/job/ID over a real Hadoop, as `nodewise serve` answers them."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import expect

from infosvc.wire.records import State
from tests.cluster.site import BROKEN, PICTURES, Site, succeed, until
from tests.cluster.small_network import small_network
from tests.cluster.standing import NODES, Standing
from tests.web.browser import WIDTH, Tabs, Unreloaded, accessible, press_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

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


@pytest.mark.skipif(ASKED not in os.environ, reason=f"pictures for the documentation are taken when {ASKED} is set")
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
    SHOTS.mkdir(parents=True, exist_ok=True)
    for name, place, complete, height, top in (
        ("cluster", "#/cluster?name=load_1m", f"{NODES} fresh", 420, "Cluster"),
        ("node", f"#/node/{node}", "ready: its agent reports", 800, f"Node {node}"),
        ("data", "#/data", "perf_history.spread", 1000, "Who makes what from what"),
        ("name", "#/data/memory_available_bytes", "half of them", 720, "memory_available_bytes"),
        ("path", path, "algorithm1", 1350, "HDFS path"),
        ("job", f"#/job/{job_id}", "maxflow", 900, f"Job {job_id}"),
    ):
        page.set_viewport_size({"width": WIDTH, "height": height})
        page.goto(f"/{place}")
        expect(page.locator("main")).to_contain_text(complete, timeout=SLOW_MS)
        expect(page.get_by_text(re.compile("Loading|Asking YARN|Listing"))).to_have_count(0, timeout=SLOW_MS)
        page.get_by_role("heading", name=top, exact=True).evaluate("heading => heading.scrollIntoView()")
        page.screenshot(path=SHOTS / f"{name}.png", animations="disabled")
