"""What `nodewise serve` answers of HDFS paths and jobs: only up here are both the service and the cluster known."""

from __future__ import annotations

from pathlib import Path

from flask import Flask

from infosvc.access.roles import needs
from infosvc.core.extras import describe
from infosvc.core.service import parts_of
from infosvc.http.api import exchange
from infosvc.state.transaction import Draft
from jobs import dashboard
from jobs.dashboard.document import BOARD


def mount(home: Path, app: Flask) -> None:
    """Add those calls to the service; `home` is where `nodewise cluster up` keeps its site files."""
    describe(app, BOARD)
    dashboard.mount(app, needs, home, parts_of(app).latest, lambda: exchange.write(_nothing))


def _nothing(_draft: Draft) -> None:
    """A change of nothing the service keeps: it leaves its line in the audit log."""
