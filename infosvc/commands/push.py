"""`nodewise producer push`: new files for the agents of nodes that are enrolled, and one step back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from infosvc.commands.options import json_option, service_options
from infosvc.commands.shipping import (
    bundle_options,
    end,
    given_options,
    on_hosts,
    register_shipped,
    ssh_options,
    tell,
    temporary_bundle,
)
from infosvc.wire.errors import InfoError
from infosvc.wire.service_options import ServiceAddress

if TYPE_CHECKING:
    from infosvc.shipping.bundle import Bundle
    from infosvc.shipping.remote import Installed, RemoteOptions


@click.command()
@click.argument("hosts", nargs=-1)
@click.option("--all", "everywhere", is_flag=True, help="Push to all nodes that are enrolled.")
@click.option("--rollback", is_flag=True, help="Go back to the previous files; a second time, forward again.")
@bundle_options
@ssh_options
@json_option
@service_options
@click.pass_obj
def push(
    home: Path,
    /,
    service: ServiceAddress,
    hosts: tuple[str, ...],
    everywhere: bool,
    rollback: bool,
    files: Path | None,
    replace: bool,
    update: bool,
    as_json: bool,
    **reaching: Any,
) -> None:
    """Push collectors, processors and the agent to enrolled nodes over SSH.

    The files are verified there before the agent is started anew with them; if the new agent does not become healthy,
    the previous one is started again. The previous release is kept for --rollback.

    \b
    Examples:
      nodewise producer push -F ~/.ssh/config --all
      nodewise producer push --files /etc/nodewise/own worker1 worker2
      nodewise producer push --rollback worker1
    """
    # Paramiko takes half a second to import, which only the commands that use it should cost.
    from infosvc.shipping.remote import RemoteOptions

    client = service.client(home)
    if bool(hosts) == everywhere:
        raise click.UsageError("name the nodes to push to, or say --all")
    if everywhere:
        hosts = tuple(found.node_name for found in client.nodes())
    options = RemoteOptions(**given_options(reaching))
    if rollback:
        results = _go_back(hosts, options)
    else:
        with temporary_bundle(home, files, replace) as content:
            results = _bring(hosts, options, content)
    tell(results, as_json, _line)
    if not rollback:
        register_shipped(client, update)
    end(results)


def _go_back(hosts: Sequence[str], options: RemoteOptions) -> dict[str, Installed | InfoError]:
    from infosvc.shipping.remote import Machine

    def go_back(host: str) -> Installed:
        with Machine(host, options) as machine:
            return machine.roll_back()

    return on_hosts("going back", hosts, go_back)


def _bring(hosts: Sequence[str], options: RemoteOptions, content: Bundle) -> dict[str, Installed | InfoError]:
    from infosvc.shipping.remote import Machine

    def bring(host: str) -> Installed:
        with Machine(host, options) as machine:
            return machine.push(content)

    return on_hosts("pushing", hosts, bring)


def _line(done: Installed) -> str:
    return f"agent {done.agent_version} at {done.address}" + ("" if done.changed else ", up to date")
