"""One look at the dashboard in a fresh browser: when it paints, when it is complete, and what its scripts cost."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from bench.info.errors import BenchError

CHROMIUM = Path("/usr/bin/chromium-headless-shell")
PATIENCE_MS = 60_000
Found = dict[str, float]

# Runs in the page before its own scripts. A node counts as shown when something leads to its page, and the last one
# as painted in the frame after that: what two frames later runs was drawn.
WATCH = """nodes => {
    const isNode = (hash) => hash.startsWith("#/node/");
    const shown = () => new Set([...document.links].map((link) => link.hash).filter(isNode));
    window.complete = new Promise((resolve, reject) => {
        const look = () => {
            if (document.links.length >= nodes && shown().size >= nodes) {
                requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now())));
            } else {
                requestAnimationFrame(look);
            }
        };
        look();
        setTimeout(() => reject(new Error(`only ${shown().size} nodes are there`)), PATIENCE);
    });
}""".replace("PATIENCE", str(PATIENCE_MS))
PAINTED = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


@contextmanager
def chromium() -> Iterator[Browser]:
    """A new browser, nothing cached; BenchError when there is none."""
    if not CHROMIUM.exists():
        raise BenchError(f"{CHROMIUM} is missing: apt-get install chromium-headless-shell")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), timeout=3 * PATIENCE_MS)
        try:
            yield browser
        finally:
            browser.close()


def version() -> str:
    """Of the browser."""
    said = subprocess.run([CHROMIUM, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    found = re.search(r"[\d.]+", said)
    return found[0] if found else ""


def look(url: str, nodes: int, live_seconds: float) -> Found:
    """Open the page of the cluster, wait until every node is there, then watch it live for some seconds."""
    try:
        with chromium() as browser:
            page = browser.new_page()
            page.set_default_timeout(PATIENCE_MS)
            page.add_init_script(f"({WATCH})({json.dumps(nodes)})")
            return _measure(page, url, live_seconds)
    except PlaywrightError as error:
        raise BenchError(f"the dashboard at {url} did not show {nodes} nodes: {error.message}") from error


def _measure(page: Page, url: str, live_seconds: float) -> Found:
    talk = page.context.new_cdp_session(page)
    talk.send("Performance.enable")
    page.goto(f"{url}/#/cluster")
    shown = page.evaluate("() => window.complete")
    complete = _metrics(talk)
    painted = page.evaluate(PAINTED)
    if painted is None:
        raise BenchError(f"the browser painted nothing of {url}")
    page.wait_for_timeout(live_seconds * 1000)
    later = _metrics(talk)
    passed = later["Timestamp"] - complete["Timestamp"]
    return {
        "first_paint_seconds": painted / 1000,
        "complete_seconds": shown / 1000,
        "script_seconds": complete["ScriptDuration"],
        "layout_seconds": complete["LayoutDuration"] + complete["RecalcStyleDuration"],
        "live_script_cores": (later["ScriptDuration"] - complete["ScriptDuration"]) / passed,
        "live_cores": (later["TaskDuration"] - complete["TaskDuration"]) / passed,
        "heap_bytes": later["JSHeapUsedSize"],
    }


def _metrics(talk: CDPSession) -> Found:
    return {each["name"]: each["value"] for each in talk.send("Performance.getMetrics")["metrics"]}
