"""What `nodewise serve` answers beside the service's own calls."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from flask import Flask

from infosvc.http.app import close_app, create_app
from infosvc.settings import Settings
from nodewise.board import board_calls

TOKEN = "a-token-for-the-tests"


def test_everything_that_is_mounted_is_there(tmp_path: Path) -> None:
    settings = Settings(database=f"sqlite:///{tmp_path / 'infosvc.db'}", token=TOKEN)
    app = create_app(settings, others=[board_calls(tmp_path)])
    try:
        rules = {rule.rule for rule in app.url_map.iter_rules()}
        assert {"/api/v1/path", "/api/v1/jobs"} <= rules
        answer = app.test_client().get("/api/v1/path?path=/")
        assert (answer.status_code, answer.get_json()["error"]["code"]) == (503, "not_ready"), "there is no cluster"
        assert _documented(app.test_client().get("/api/v1/swagger.json").get_json()) == _mounted(app)
    finally:
        close_app(app)


def _documented(document: dict[str, Any]) -> set[tuple[str, str]]:
    """Every call of the board in the OpenAPI document, which names every refusal and shows an example if not a file."""
    found = set()
    for path, calls in document["paths"].items():
        for method, call in calls.items():
            if method != "parameters" and call["tags"] == ["board"]:
                assert {"401", "403", "429", "503"} - set(call["responses"]) <= {"403"}, (method, path)
                assert all(
                    said["schema"] == {"type": "file"} or "application/json" in said["examples"]
                    for code, said in call["responses"].items()
                    if code < "5"
                )
                found.add((method.upper(), path))
    return found


def _mounted(app: Flask) -> set[tuple[str, str]]:
    return {
        (method, re.sub(r"<(?:[a-z]+:)?([a-z_]+)>", r"{\1}", rule.rule.removeprefix("/api/v1")))
        for rule in app.url_map.iter_rules()
        if rule.endpoint.startswith("board.")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }


def test_no_other_command_pays_for_it() -> None:
    asked = "import sys, nodewise.__main__ as front; front.cli(['top', '--help'], standalone_mode=False);"
    said = "sys.exit([name for name in ('flask', 'jobs.dashboard', 'nodewise.board') if name in sys.modules] != [])"
    assert subprocess.run([sys.executable, "-c", asked + said], capture_output=True, timeout=60).returncode == 0
