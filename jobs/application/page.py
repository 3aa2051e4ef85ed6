"""The application master's own page: how far the job is, for whoever follows the link in the ResourceManager.

What stays of a job that has no report of its own is shown in the same way.
"""

from __future__ import annotations

from jobs.application.status import JobStatus
from jobs.reports.pages import pages

REFRESH_SECONDS = 2


def page(status: JobStatus, report: str = "") -> str:
    """One self-contained page that loads itself again; `report` is where the report will be, a URL or a path."""
    return _render(status, report=report, refresh_seconds=REFRESH_SECONDS, said="")


def record_page(status: JobStatus, said: str) -> str:
    """The same of a job that has ended: it stays as it is, and tells what was `said` last."""
    return _render(status, report="", refresh_seconds=0, said=said)


def _render(status: JobStatus, **more: str | int) -> str:
    """Bytes of own disks are shown where there are any, or where results will tell of them."""
    has_local = bool(more["report"]) or any(node.local for node in status.nodes)
    return pages().get_template("status.html.j2").render(status=status, has_local=has_local, **more)
