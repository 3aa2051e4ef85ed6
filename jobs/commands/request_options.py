"""The options of `nodewise job submit` that say what a job shall be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from infosvc.wire.service_options import ServiceAddress, read_token
from jobs.application.job_spec import JobOptions
from jobs.application.submit import InfoAccess
from jobs.commands.made_options import collect, made_options
from jobs.commands.service_options import service_options
from jobs.kinds.classify.request import Request
from jobs.kinds.classify.settings import ClassifySettings

COLD_START = "perf_cpu"
"""Decides as long as no node has the capability, unless the user names another one."""


def request_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """All of them, in the order in which --help shows them."""
    return made_options(ClassifySettings, JobOptions)(service_options(command))


def request(home: Path, given: Mapping[str, Any]) -> Request:
    """What the values of the options ask for."""
    given = {**given, "cold_start": given["cold_start"] or COLD_START}
    return Request(collect(ClassifySettings, given), collect(JobOptions, given), access(home, given["service"]))


def access(home: Path, service: ServiceAddress) -> InfoAccess:
    """Where the information service is, and what is shown to it."""
    return InfoAccess(service.url, read_token(home, service.token_file), service.authority)
