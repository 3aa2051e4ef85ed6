"""`nodewise doctor`: one line for each check, and what to do where something is wrong."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hadoop.local.state import jars_of_clients
from infosvc.commands import show
from infosvc.commands.options import json_option, service_options
from infosvc.commands.shipping import DIRECTORY, given_options, ssh_options
from infosvc.wire.service_options import ServiceAddress
from jobs.application.package import WORKER_PYTHON, WORKER_PYTHON_VARIABLE
from nodewise.doctor.checks import look
from nodewise.doctor.finding import Finding, State
from nodewise.doctor.request import Request

COLOURS = {State.OK: "green", State.WARN: "yellow", State.FAIL: "bold red", State.SKIPPED: "dim"}

_path = click.Path(path_type=Path)


@click.command()
@click.option("--ssh", "log_in", is_flag=True, help="Also log in to every enrolled node, as `nodewise node add` does.")
@ssh_options
@click.option(
    "--hadoop-conf",
    type=_path,
    envvar="HADOOP_CONF_DIR",
    help="Folder of Hadoop's site files [default: those of `nodewise cluster up`].",
)
@click.option(
    "--jars",
    type=_path,
    envvar="NODEWISE_JARS",
    help="Folder of Hadoop's jars [default: those of `nodewise cluster up`, else of this installation].",
)
@click.option(
    "--worker-python",
    type=_path,
    envvar=WORKER_PYTHON_VARIABLE,
    default=WORKER_PYTHON,
    help="Python with the engine on the nodes [default: that of this installation].",
)
@click.option(
    "--files", type=DIRECTORY, envvar="NODEWISE_FILES", help="Own files to push [default: HOME/files where it exists]."
)
@json_option
@service_options
@click.pass_context
def doctor(context: click.Context, /, log_in: bool, as_json: bool, **options: Any) -> None:
    """Look at this machine and the cluster it would use, and say what is wrong and what to do.

    Java, jars, Python, disk, ports, HDFS, YARN, the information service, the token, the agents, versions, clocks; with
    --ssh also the logins. Nothing is changed. What is not there yet is skipped. Exit status 1 when a check fails.

    \b
    Example:
      nodewise doctor
      nodewise doctor --ssh --json
    """
    findings = look(_collect(context, log_in, options))
    failed = any(finding.state is State.FAIL for finding in findings)
    if as_json:
        show.as_json({"ok": not failed, "findings": [asdict(finding) for finding in findings]})
    else:
        _show(findings)
    sys.exit(1 if failed else 0)


def _collect(context: click.Context, log_in: bool, options: dict[str, Any]) -> Request:
    """Collect the options of the command; those without a field of their own say how to log in."""
    home: Path = context.obj
    own = {name: options.pop(name) for name in ("hadoop_conf", "jars", "worker_python", "files")}
    service: ServiceAddress = options.pop("service")
    if own["hadoop_conf"] and own["hadoop_conf"].absolute() == home / "cluster" / "conf":
        own["hadoop_conf"] = None  # as `nodewise cluster status` says it
    own["jars"] = own["jars"] or jars_of_clients(home, own["hadoop_conf"] or home / "cluster" / "conf")
    return Request(
        home=home,
        url=service.url,
        url_given=context.get_parameter_source("url") is not ParameterSource.DEFAULT,
        token_file=service.token_file,
        ca_file=service.authority,
        ssh=_logins(home, options) if log_in else None,
        **own,
    )


def _logins(home: Path, options: dict[str, Any]) -> Any:
    """How to log in; where no option says it, as the local cluster's own configuration does."""
    from infosvc.shipping.remote import RemoteOptions

    own = home / "cluster" / "ssh" / "config"
    return RemoteOptions(**({"ssh_config": own} if own.is_file() else {}) | given_options(options))


def _show(findings: Sequence[Finding]) -> None:
    table = Table("check", "state", "found", box=None, pad_edge=False, header_style="bold")
    table.columns[2].overflow = "fold"
    for finding in findings:
        table.add_row(finding.name, Text(finding.state, COLOURS[finding.state]), _describe(finding))
    Console(width=None if sys.stdout.isatty() else show.PIPE_WIDTH).print(table)
    states = Counter(finding.state for finding in findings)
    click.echo(", ".join(f"{states[state]} {state}" for state in State if states[state]))


def _describe(finding: Finding) -> Text:
    """The text of a finding and, on its own line, the remedy; control characters of a server are made harmless."""
    text = Text(show.plain(finding.what))
    if finding.remedy:
        text.append(f"\n-> {show.plain(finding.remedy)}", "bold" if finding.state is State.FAIL else "")
    return text
