"""The service drives granian by names that granian does not promise to keep; a change of them must not go unnoticed."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import granian.server.embed
import pytest

import infosvc.http.server

ROOT = Path(__file__).resolve().parents[2]
WHAT_TO_DO = (
    "granian has changed what infosvc/http/server.py uses of it. Read how granian/server/mt.py (_spawn_wsgi_worker) of "
    "the new version makes a WSGI worker, change _worker, _answer and Server.run in infosvc/http/server.py alike, run "
    "tests/infosvc/test_edges.py, test_tls.py and test_durability.py, and scripts/bench info against the version "
    "before, then write the new names and the new version here and in pyproject.toml"
)
# What each name that is used takes. `granian.http` is public.
USED = {
    "granian._granian.SocketHolder": "(fd, uds, backlog)",
    "granian._granian.WorkerSignal": "()",
    "granian._granian.WSGIWorker": "(worker_id, sock, ipc, threads=1, blocking_threads=512, py_threads=1, "
    "py_threads_idle_timeout=30, backpressure=128, http_mode='1', http1_opts=None, http2_opts=None, static_files=None, "
    "ssl_enabled=False, ssl_cert=None, ssl_key=None, ssl_key_password=None, ssl_protocol_min='1.3', ssl_ca=None, "
    "ssl_crl=Ellipsis, ssl_client_verify=False, metrics=Ellipsis)",
    "granian._futures._new_cbscheduler": "(loop, cb, impl_asyncio=False)",
    "granian.wsgi.ResponseIterWrap": "(inner)",
}
METHODS = {
    "granian._granian.WSGIWorker.serve_mtr": "($self, callback, event_loop, signal)",
    "granian._granian.WorkerSignal.set": "($self)",
}


def find(place: str) -> Any:
    """What stands at `module.name` or `module.class.method`; fails in words when nothing does."""
    module = next(one for one in ("granian._granian", "granian._futures", "granian.wsgi") if place.startswith(one))
    found: Any = importlib.import_module(module)
    for name in place.removeprefix(f"{module}.").split("."):
        found = getattr(found, name, None)
        assert found is not None, f"{place} is gone. {WHAT_TO_DO}"
    return found


@pytest.mark.parametrize("place", USED)
def test_what_is_used_of_granian_takes_what_it_is_given(place: str) -> None:
    assert str(inspect.signature(find(place))) == USED[place], WHAT_TO_DO


@pytest.mark.parametrize("place", METHODS)
def test_the_worker_is_started_and_ended_as_before(place: str) -> None:
    assert find(place).__text_signature__ == METHODS[place], WHAT_TO_DO


def test_every_name_that_is_used_is_guarded_here() -> None:
    tree = ast.parse(Path(infosvc.http.server.__file__).read_text())
    found = {
        f"{node.module}.{one.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("granian")
        for one in node.names
    }
    assert found - {"granian.http.HTTP1Settings"} == set(USED)


def test_the_version_that_was_tried_is_the_one_that_is_installed() -> None:
    (pinned,) = re.findall(r'"granian==([^"]+)"', (ROOT / "pyproject.toml").read_text())
    for lock in ("service", "dev"):
        assert f"granian=={pinned} \\" in (ROOT / "requirements" / f"{lock}.txt").read_text(), WHAT_TO_DO
    assert version("granian") == pinned, WHAT_TO_DO


def test_granian_has_no_public_way_yet_to_serve_wsgi_within_a_process() -> None:
    assert not hasattr(granian.server.embed, "WSGIWorker"), (
        "granian.server.embed seems to speak WSGI now: try it in place of what infosvc/http/server.py does, and take "
        "it if it is as fast in scripts/bench info"
    )
