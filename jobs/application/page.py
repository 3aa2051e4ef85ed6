"""The application master's own page: how far the job is, for whoever follows the link in the ResourceManager."""

from __future__ import annotations

from jobs.application.status import JobStatus
from jobs.reports.pages import pages

REFRESH_SECONDS = 2


def page(status: JobStatus, report: str = "") -> str:
    """One self-contained page that loads itself again; `report` is where the report will be, a URL or a path."""
    template = pages().get_template("status.html.j2")
    return template.render(status=status, report=report, refresh_seconds=REFRESH_SECONDS)
