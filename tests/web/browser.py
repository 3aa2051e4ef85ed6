"""A real browser, and a recorder of what no page of ours may do in it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, Request, expect, sync_playwright

CHROMIUM = Path("/usr/bin/chromium-headless-shell")
NO_GPU = ["--disable-gpu", "--disable-gpu-rasterization"]
"""Painting as if there were one takes twice the CPU."""
PATIENCE_MS = 60_000
WIDTH, HEIGHT = 1280, 900
ADDRESSES = ("http", "https", "ws", "wss")
# A service that is stopped, as at the end of a test, is not a mistake of the page that still asks it; nor is a network
# interface of this machine that comes or goes, as those of Docker do beside this test.
GONE = re.compile(
    r"net::ERR_(CONNECTION_(REFUSED|RESET|CLOSED|ABORTED)|EMPTY_RESPONSE|INCOMPLETE_CHUNKED_ENCODING|NETWORK_CHANGED|"
    r"SOCKET_NOT_CONNECTED)"
)
DROPPED = "net::ERR_NETWORK_CHANGED"

expect.set_options(timeout=PATIENCE_MS)


@contextmanager
def chromium(*words: str) -> Iterator[Browser]:
    """Debian's Chromium that has no windows, with further options, until the block ends."""
    if not CHROMIUM.exists():
        pytest.fail(f"{CHROMIUM} is not installed: apt-get install chromium-headless-shell")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=[*NO_GPU, *words], timeout=3 * PATIENCE_MS
        )
        try:
            yield browser
        finally:
            browser.close()


class Recorder:
    """Notes errors on the console, errors that no page caught, and requests to anybody but the service.

    `dropped` are requests that Chromium has given up because a network interface came or went.
    """

    def __init__(self, url: str) -> None:
        self._host = urlsplit(url).netloc
        self._expected: list[str] = []
        self.faults: list[str] = []
        self.dropped: list[str] = []

    def listen(self, page: Page) -> None:
        """Note what this page does from now on."""
        page.on("console", self._console)
        page.on("pageerror", self._error)
        page.on("request", self._request)
        page.on("requestfailed", self._failed)

    def expect(self, *patterns: str) -> None:
        """Faults that fit one of these are what the test provokes: a refused call stands on the console."""
        self._expected += patterns

    def unexpected(self) -> list[str]:
        """What nothing was expected of."""
        return [fault for fault in self.faults if not any(re.search(pattern, fault) for pattern in self._expected)]

    def missing(self) -> list[str]:
        """What was expected and did not come."""
        return [each for each in self._expected if not any(re.search(each, fault) for fault in self.faults)]

    def _console(self, message: ConsoleMessage) -> None:
        where = message.location.get("url", "")
        # On its way out a service refuses new streams, which the browser asks for as the old one ends.
        ending = "status of 503" in message.text and "/api/v1/events" in where
        if message.type == "error" and not ending and not GONE.search(message.text):
            self.faults.append(f"console: {message.text} ({where})")

    def _error(self, error: Error) -> None:
        self.faults.append(f"page: {error.message}\n{error.stack}")

    def _request(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme in ADDRESSES and address.netloc != self._host:
            self.faults.append(f"request to another host: {request.url}")

    def _failed(self, request: Request) -> None:
        if request.failure == DROPPED:
            self.dropped.append(request.url)


class Tabs:
    """Opens pages of one test, each with cookies of its own, and looks at their recorders in the end."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self._recorders: list[tuple[Page, Recorder]] = []

    def open(
        self, url: str, place: str = "#/cluster", token: str | None = None, scheme: Literal["light", "dark"] = "light"
    ) -> Page:
        """A page of the service at this address, logged in if a token is given."""
        context = self._browser.new_context(
            base_url=url,
            viewport={"width": WIDTH, "height": HEIGHT},
            color_scheme=scheme,
            reduced_motion="reduce",
            locale="en-GB",
        )
        self._contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        recorder = Recorder(url)
        recorder.listen(page)
        self._recorders.append((page, recorder))
        page.goto(f"/{place}")
        self._complete(page, recorder)
        if token is not None:
            log_in(page, token)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        self._complete(page, recorder)
        return page

    def reload(self, page: Page) -> None:
        """Load one of these pages anew."""
        recorder = self._recorder(page)
        recorder.dropped.clear()
        page.reload()
        self._complete(page, recorder)

    @staticmethod
    def _complete(page: Page, recorder: Recorder) -> None:
        """Load it anew while Chromium has dropped a part of it: without one of its scripts no page ever works."""
        while recorder.dropped:
            recorder.dropped.clear()
            page.reload()
            if not recorder.dropped:
                expect(page.get_by_role("heading", level=1)).to_be_visible()

    def expect(self, page: Page, *patterns: str) -> None:
        """This page will run into that, and it is not a fault."""
        self._recorder(page).expect(*patterns)

    def close(self) -> None:
        """Close all; the test fails when a page did what none may do, or not what was expected."""
        for page, _ in self._recorders:
            page.unroute_all(behavior="ignoreErrors")  # the page may just ask for what a test answers in its own way
            page.title()  # what was told before the answer to this has been noted now
        for context in self._contexts:
            context.close()
        unexpected = [fault for _, recorder in self._recorders for fault in recorder.unexpected()]
        missing = [pattern for _, recorder in self._recorders for pattern in recorder.missing()]
        assert not unexpected, "\n".join(unexpected)
        assert not missing, "these were expected and did not come"

    def _recorder(self, page: Page) -> Recorder:
        return next(recorder for mine, recorder in self._recorders if mine is page)


def log_in(page: Page, token: str) -> None:
    """As a person does it, until the page shows who it is."""
    page.get_by_role("button", name="Log in").click()
    dialog = page.get_by_role("dialog", name="Log in")
    dialog.get_by_label("Access token").fill(token)
    dialog.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("button", name="Log out")).to_be_visible()


def accessible(page: Page) -> None:
    """No violation of any of axe's rules."""
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def go(page: Page, place: str, title: str | re.Pattern[str]) -> None:
    """To another page of the dashboard, without loading it anew; `title` is its heading."""
    page.evaluate("place => { location.hash = place }", place)
    expect(page.get_by_role("heading", level=1, name=title)).to_be_visible()


class Unreloaded:
    """Proves at the end of its block that the page was never loaded anew within it."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def __enter__(self) -> None:
        self._page.evaluate("() => { window.stayed = true }")

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            assert self._page.evaluate("() => window.stayed === true"), "the page was loaded anew"


def press_until(page: Page, name: str | re.Pattern[str], key: str = "Tab", most: int = 200) -> None:
    """Press a key until what has the focus carries this name, as somebody without a mouse does.

    `most` times lead once round any page; where that is too soon for a page that is still being made, it goes on.
    """
    deadline = time.monotonic() + PATIENCE_MS / 1000
    pressed = 0
    while pressed < most or time.monotonic() < deadline:
        pressed += 1
        page.keyboard.press(key)
        if _fits(focused(page), name):
            return
    pytest.fail(f"{name!r} is not reached with {key}; the last in focus is {focused(page)!r}")


def focused(page: Page) -> str:
    """The label, else the text, of what has the focus."""
    return str(page.evaluate(_NAME_OF_FOCUS)).strip()


def _fits(found: str, name: str | re.Pattern[str]) -> bool:
    return found == name if isinstance(name, str) else name.search(found) is not None


_NAME_OF_FOCUS = """() => {
    const element = document.activeElement;
    if (!element || element === document.body) return "";
    const label = element.labels?.[0]?.textContent;
    return (element.getAttribute("aria-label") ?? label ?? element.textContent).replace(/\\s+/g, " ");
}"""
