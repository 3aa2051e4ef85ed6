"""What `nodewise serve` answers of HDFS paths and jobs: only up here are both the service and the cluster known."""

from __future__ import annotations

from pathlib import Path

from flask import Flask

from infosvc.api import exchange
from infosvc.auth import needs
from infosvc.draft import Draft
from infosvc.extras import describe
from infosvc.parts import parts_of
from jobs import board
from jobs.board.document import BOARD


def mount(home: Path, app: Flask) -> None:
    """Add those calls to the service; `home` is where `nodewise cluster up` keeps its site files."""
    describe(app, BOARD)
    board.mount(app, needs, home, parts_of(app).latest, lambda: exchange.write(_nothing))


def _nothing(_draft: Draft) -> None:
    """A change of nothing the service keeps: it leaves its line in the audit log."""
