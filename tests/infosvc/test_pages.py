"""The dashboard's files: who gets them, how browsers are to treat them, and that nothing else can be had there."""

from __future__ import annotations

import base64
import hashlib
import http.client
import importlib.metadata
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from infosvc.http.api.pages import CSP, PLAIN, STRICT, TYPES, WEB, read
from infosvc.wire.records import Producer

if TYPE_CHECKING:
    from tests.infosvc.conftest import Served, Serving

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(read(WEB))
SECRET = "not to be had"


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files of ours, in place of the dashboard, and something beside it that is not a page."""
    folder = tmp_path / "web"
    (folder / "pages").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>it</title>")
    (folder / "main.js").write_text("export {};")
    (folder / "pages" / "one.js").write_text("export const one = 1;")
    (folder / "style.css").write_text("main { color: red; }")
    (folder / "notes.txt").write_text(SECRET)
    (tmp_path / "beside.js").write_text(SECRET)
    monkeypatch.setattr("infosvc.http.api.pages.WEB", folder)
    return folder


@pytest.fixture
def closed(web: Path, sqlite_url: str, serve: Serving) -> Iterator[Served]:
    """A service with those files, which nobody reads without a token."""
    with serve(sqlite_url, open_reading=False) as service:
        yield service


@pytest.fixture
def dashboard(sqlite_url: str, serve: Serving) -> Iterator[Served]:
    """A service with the dashboard that ships."""
    with serve(sqlite_url) as service:
        yield service


@pytest.mark.parametrize(
    ("path", "file", "kind"),
    [
        ("/", "index.html", "text/html; charset=utf-8"),
        ("/web/index.html", "index.html", "text/html; charset=utf-8"),
        ("/web/main.js", "main.js", "text/javascript; charset=utf-8"),
        ("/web/pages/one.js", "pages/one.js", "text/javascript; charset=utf-8"),
        ("/web/style.css", "style.css", "text/css; charset=utf-8"),
    ],
)
@pytest.mark.parametrize("token", [None, "wrong"])
def test_whoever_asks_gets_the_files(
    closed: Served, web: Path, path: str, file: str, kind: str, token: str | None
) -> None:
    answer = closed.ask("GET", path, token=token)
    assert (answer.status, answer.content) == (200, (web / file).read_bytes())
    said = {
        "content-type": kind,
        CSP.lower(): STRICT,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-cache",
    }
    assert {name: answer.headers.get(name) for name in said} == said
    assert "set-cookie" not in answer.headers
    assert closed.ask("GET", "/api/v1/nodes", token=token).status == 401


def test_the_policy_lets_a_page_load_from_here_alone() -> None:
    allowed = dict(part.split(" ", 1) for part in STRICT.split("; "))
    assert allowed == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }


def test_a_file_that_has_not_changed_is_not_sent_again(closed: Served) -> None:
    first = closed.ask("GET", "/web/main.js", token=None)
    again = closed.ask("GET", "/web/main.js", token=None, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    assert again.headers[CSP.lower()] == STRICT
    other = closed.ask("GET", "/web/style.css", token=None, headers={"If-None-Match": first.headers["etag"]})
    assert other.status == 200
    head = closed.ask("HEAD", "/", token=None)
    assert (head.status, head.content) == (200, b"")


def _raw(service: Served, path: str) -> tuple[int, bytes]:
    """A path as it stands, which no client has tidied up."""
    where = urlsplit(service.url)
    connection = http.client.HTTPConnection(str(where.hostname), where.port, timeout=60)
    try:
        connection.putrequest("GET", path)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize(
    "path",
    [
        "/web/../beside.js",
        "/web/%2e%2e/beside.js",
        "/web/..%2fbeside.js",
        "/web/%2e%2e%2fbeside.js",
        "/web/pages/../../beside.js",
        "/web/..\\beside.js",
        "/web/%00",
        "/web//etc/passwd",
        "/web/%2fetc%2fpasswd",
        "/web/../pages.py",
        "/web/",
        "/web/pages",
        "/web/pages/",
        "/web/notes.txt",
        "/web/none.js",
        "/web/MAIN.JS",
    ],
)
def test_no_path_leads_to_anything_else(closed: Served, path: str) -> None:
    status, said = _raw(closed, path)
    assert status in (308, 400, 401, 404) and SECRET.encode() not in said and b"root:" not in said


def test_a_file_that_is_not_there_is_answered_in_our_form(closed: Served) -> None:
    answer = closed.ask("GET", "/web/none.js", token=None)
    assert (answer.status, answer.error["code"]) == (404, "not_found")
    assert closed.ask("POST", "/", {}).status == 405


@pytest.mark.parametrize("path", ["/", *(f"/web/{name}" for name in FILES)])
def test_everything_that_ships_is_served_under_the_strict_policy(dashboard: Served, path: str) -> None:
    answer = dashboard.ask("GET", path, token=None)
    assert (answer.status, answer.headers[CSP.lower()]) == (200, STRICT)
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_nothing_within_a_page_breaks_the_policy(dashboard: Served) -> None:
    page = dashboard.ask("GET", "/", token=None).text
    assert not re.search(r"<style|\sstyle=|\son\w+=", page)
    assert all(not inline.strip() for inline in re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL))
    loaded = re.findall(r"(?:src|href)=\"([^\"#]+)\"", page)
    assert loaded
    for place in loaded:
        path = place if place.startswith("/") else f"/{place}"
        assert place.startswith("data:") or dashboard.ask("GET", path, token=None).status == 200, place


def test_everything_that_is_there_is_packed() -> None:
    globs = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["infosvc"]
    there = {path for path in WEB.rglob("*") if path.is_file()}
    assert there
    for path in there - set((WEB / "vendor").iterdir()):
        assert path.suffix in TYPES, f"{path.relative_to(WEB)} would be served to nobody"
    assert there <= {path for glob in globs for path in WEB.parent.glob(glob)}


def test_swagger_ui_may_run_its_own_script_and_no_other(dashboard: Served) -> None:
    answer = dashboard.ask("GET", "/api/v1/", token=None)
    allowed = dict(part.split(" ", 1) for part in answer.headers[CSP.lower()].split("; "))
    [inline] = [text for text in re.findall(r"<script[^>]*>(.*?)</script>", answer.text, re.DOTALL) if text.strip()]
    digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
    assert allowed["script-src"] == f"'self' 'sha256-{digest}'"
    assert "'unsafe-inline'" in allowed["style-src"] and allowed["frame-ancestors"] == "'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_other_pages_run_no_script(sqlite_url: str, serve: Serving, tmp_path: Path) -> None:
    policy = tmp_path / "nodewise-policy.properties"
    policy.write_text("first.score = cpu higher 0..1\n")
    with serve(sqlite_url, policy_file=str(policy)) as service:
        service.client.put_producer(Producer("cpu", "x", 1))
        page, read_by_programs = service.ask("GET", "/explain"), service.ask("GET", "/api/v1/nodes")
    assert (page.status, page.headers[CSP.lower()]) == (200, PLAIN)
    assert page.headers["x-content-type-options"] == read_by_programs.headers["x-content-type-options"] == "nosniff"


def test_readiness_says_which_version_answers(dashboard: Served) -> None:
    said = dashboard.ask("GET", "/readyz", token=None).json
    assert said == {"status": "ready", "agents": "http", "version": importlib.metadata.version("nodewise")}


def test_every_answer_says_how_little_other_sites_may_do_with_it(sqlite_url: str, serve: Serving) -> None:
    with serve(sqlite_url) as service:
        service.client.put_producer(Producer("cpu", "x", 1))
        service.client.put_node("n1", "127.0.0.1:9")
        tag = {"If-None-Match": service.ask("GET", "/api/v1/data/cpu").headers["etag"]}
        report = {"boot": "b", "sequence": 1, "runs": []}
        answers = [
            service.ask("GET", "/api/v1/data/cpu"),
            service.ask("GET", "/api/v1/data/cpu", None, None, tag),
            service.ask("POST", "/api/v1/nodes/n1/report", report),
            service.ask("POST", "/api/v1/nodes/n1/report", "no JSON"),
            *(service.ask("GET", path) for path in ("/", "/healthz", "/metrics", "/nowhere", "/api/v1/swagger.json")),
        ]
        assert [answer.status for answer in answers] == [200, 304, 200, 400, 200, 200, 200, 404, 200]
        for answer in answers:
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cross-origin-resource-policy"] == "same-origin"
