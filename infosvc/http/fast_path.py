"""The fast lane: reports, and reads of one name, answered without the costs of a framework.

It answers what is usual. Anything else (an unknown name, a wrong token, a query) is left to Flask, and what is wrong
with a report is said in the words and form that Flask would answer it in.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from flask import Flask

from infosvc.access.authenticator import Authenticator
from infosvc.access.body_limit import BodyLimit
from infosvc.access.proxies import Proxies, peer_of
from infosvc.core.metrics import Calls
from infosvc.core.service import components_of
from infosvc.data import intake
from infosvc.data.agent_report import read_report
from infosvc.http.api.data import OneName
from infosvc.http.api.nodes import NodeReport
from infosvc.http.api.pages import GUARDS, protect
from infosvc.http.api.paging import next_link
from infosvc.http.api.restx import error_response
from infosvc.state.views import Latest
from infosvc.state.writer import Writer
from infosvc.wire.errors import InfoError

Environ = dict[str, Any]
Start = Callable[..., Any]

LIVE = "/healthz"  # answers as long as the process does
_ONE_TAG = re.compile('"[^"]*"')  # what most callers show; lists and weak tags are left to Flask
_KEPT = (("Cache-Control", "no-cache"), ("Vary", "Accept"))  # asked again each time, and one answer for each form


class _NotedStart:
    """Passes a start of an answer on and remembers its status."""

    __slots__ = ("_start", "status")

    def __init__(self, start: Start) -> None:
        self._start = start
        self.status = 0

    def __call__(self, status: str, headers: list[tuple[str, str]], error: Any = None) -> None:
        self.status = int(status[:3])
        self._start(status, headers, error)


class FastLane:
    """A WSGI application in front of another."""

    def __init__(self, app: Flask) -> None:
        self._app = app
        self._latest: Latest = components_of(app).latest
        self._writer: Writer = components_of(app).writer
        self._authenticator: Authenticator = components_of(app).authenticator
        self._bodies: BodyLimit = components_of(app).bodies
        self._calls: Calls = components_of(app).metrics.calls
        self._most = components_of(app).settings.max_answer
        self._passed_over = components_of(app).metrics.passed_over.count
        self._claim = components_of(app).store.claim
        self._proxies = Proxies(components_of(app).settings.trusted_proxies)
        read_rule, report_rule = _rule_of(app, OneName), _rule_of(app, NodeReport)
        self._read_call, self._report_call = f"GET {read_rule}", f"POST {report_rule}"
        self._data = read_rule.removesuffix("<data_name>")
        self._nodes, self._report_end = report_rule.split("<node_name>")
        self.running: dict[int, tuple[str, float]] = {}  # by thread: from which address, since when (monotonic)

    def __call__(self, environ: Environ, start: Start) -> Iterable[bytes]:
        """Answer one call."""
        thread = threading.get_ident()
        self.running[thread] = environ["REMOTE_ADDR"], time.monotonic()
        try:
            if self._claim is not None and environ["PATH_INFO"] != LIVE:
                self._claim.check()
            self._proxies.correct(environ)
            return self._answer(environ, start)
        except Exception as error:  # a fault of our own: the server would answer nothing at all
            return self._refuse(error, environ, start)
        finally:
            del self.running[thread]

    def drain(self, seconds: float) -> None:
        """Wait until no call is being answered, at most so long."""
        deadline = time.monotonic() + seconds
        while self.running and time.monotonic() < deadline:
            time.sleep(0.01)

    def _answer(self, environ: Environ, start: Start) -> Iterable[bytes]:
        begun = time.perf_counter()
        path: str = environ["PATH_INFO"]
        method = environ["REQUEST_METHOD"]
        noted = _NotedStart(start)
        answer: Iterable[bytes] | None
        if method == "GET" and path.startswith(self._data) and not environ["QUERY_STRING"]:
            call, answer = self._read_call, self._read(environ, path[len(self._data) :], noted)
        elif method == "POST" and path.startswith(self._nodes) and path.endswith(self._report_end):
            node_name = path[len(self._nodes) : -len(self._report_end)]
            call, answer = self._report_call, self._report(environ, node_name, noted)
        else:
            call, answer = "", None
        if answer is None:
            return self._app(environ, start)
        self._calls.count(call, noted.status, time.perf_counter() - begun)
        return answer

    def _read(self, environ: Environ, data_name: str, start: Start) -> list[bytes] | None:
        producer = self._latest.configuration.producers.get(data_name)
        asked = environ.get("HTTP_IF_NONE_MATCH")
        if producer is None or environ.get("HTTP_ACCEPT", "*/*") not in ("*/*", "application/json"):
            return None
        if asked is not None and not _ONE_TAG.fullmatch(asked):
            return None
        try:
            caller = self._authenticator.caller(environ)
        except InfoError:
            return None
        if caller.reads_one_node:  # it has to say which, as calls of the fast lane do not
            return None
        clock = self._latest.clock
        now = clock.monotonic()
        if asked is None or asked != self._latest.current_values.etag(producer, now):
            answer = self._latest.current_values.answer(producer, now, clock.wall(), self._most)
            if asked != answer.etag:
                more = () if answer.last is None else (("Link", next_link((), answer.last)),)
                start("200 OK", _headers(answer.body, ("ETag", answer.etag), *_KEPT, *more))
                return [answer.body]
        start("304 Not Modified", [("ETag", asked), *_KEPT, *GUARDS])
        return [b""]

    def _report(self, environ: Environ, node_name: str, start: Start) -> Iterable[bytes] | None:
        length = environ.get("CONTENT_LENGTH", "")
        if node_name not in self._latest.configuration.nodes or not length.isdecimal():
            return None
        if int(length) > self._app.config["MAX_CONTENT_LENGTH"]:
            return None
        try:
            caller = self._authenticator.admit_agent(environ, node_name)
        except InfoError:
            return None
        try:
            body = self._bodies.read(caller.token_id, peer_of(environ), int(length), environ["wsgi.input"].read)
            receipt = intake.take(self._latest, self._writer, node_name, read_report(body, self._passed_over), caller)
        except InfoError as error:
            return self._refuse(error, environ, start)
        content = msgspec.json.encode(receipt)
        start("200 OK", _headers(content))
        return [content]

    def _refuse(self, error: Exception, environ: Environ, start: Start) -> Iterable[bytes]:
        """An error in the one form that all errors have."""
        with self._app.request_context(environ):
            return protect(error_response(error))(environ, start)


def _rule_of(app: Flask, resource: type) -> str:
    """Where a resource of the list of calls answers: with <names> for what differs."""
    at = {getattr(app.view_functions[one.endpoint], "view_class", None): one.rule for one in app.url_map.iter_rules()}
    return at[resource]


def _headers(body: bytes, *more: tuple[str, str]) -> list[tuple[str, str]]:
    return [("Content-Type", "application/json"), ("Content-Length", str(len(body))), *GUARDS, *more]
