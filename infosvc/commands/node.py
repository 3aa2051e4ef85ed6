"""`nodewise node`: the machines that run collectors and processors."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from infosvc.access.roles import is_loopback
from infosvc.commands import show
from infosvc.commands.options import (
    for_each,
    json_option,
    service_options,
    to_be_taken_away,
)
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
from infosvc.shipping.enrolment import NOTHING, Admission, Roster, start_missing
from infosvc.wire.errors import InfoError, InvalidInput
from infosvc.wire.records import check_node_name
from infosvc.wire.service_options import ServiceAddress

if TYPE_CHECKING:
    from infosvc.shipping.bundle import Bundle
    from infosvc.shipping.remote import Installed, Machine, RemoteOptions
    from infosvc.wire.client import InfoClient


class Returnable(click.Path):
    """A directory that is there, or '' to take back the one that was given before."""

    def __init__(self) -> None:
        super().__init__(exists=True, file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The directory's path, NOTHING for ''."""
        return NOTHING if value == "" else super().convert(value, param, ctx)


@click.group()
def node() -> None:
    """Enrol the machines that run collectors and processors.

    \b
    Example:
      nodewise node list
    """


@node.command("list")
@json_option
@service_options
@click.pass_obj
def list_all(home: Path, service: ServiceAddress, as_json: bool) -> None:
    """List all nodes: ready, stale (silent for some seconds) or lost.

    \b
    Example:
      nodewise node list --json
    """
    nodes = service.client(home).nodes()
    if as_json:
        show.as_json([item.to_json() for item in nodes])
    else:
        columns = ("node", "state", "last seen", "address", "agent")
        rows = [(n.node_name, n.state, show.moment(n.last_seen), n.address, n.agent_version) for n in nodes]
        show.as_table(columns, rows, "no node is enrolled: add one with `nodewise node add HOST`")


@node.command("rm")
@click.argument("names", nargs=-1, required=True)
@service_options
@click.pass_obj
def remove(home: Path, service: ServiceAddress, names: tuple[str, ...]) -> None:
    """Stop the agents of nodes and forget the nodes, their slots and their values.

    Each agent removes its token; `nodewise uninstall` also removes its other files.

    \b
    Example:
      nodewise node rm 127.0.1.14
    """
    client = service.client(home)

    def forget(name: str) -> str:
        with to_be_taken_away("no node is enrolled under this name", "nodewise node list"):
            client.delete_node(check_node_name(name))
        return "forgotten"

    for_each(names, forget)


@node.command()
@click.argument("hosts", nargs=-1, required=True)
@click.option("--port", "agent_port", type=click.IntRange(1, 65535), help="Port of the agent.  [default: 8410]")
@click.option(
    "--allow",
    multiple=True,
    help="Directory of the machine whose programs may run as well; repeatable, '' for none.  [default: as before]",
)
@click.option("--allow-any", is_flag=True, help="Let --allow name any directory, even one with an interpreter in it.")
@click.option(
    "--tls-dir",
    type=Returnable(),
    help="Certificates and keys of the agents, HOST.pem and HOST.key; '' for none.  [default: as before]",
)
@click.option("--unchanged", is_flag=True, help="Leave alone a node whose agent is as asked for.")
@click.option("--start/--no-start", default=True, show_default=True, help="Start the shipped collectors.")
@bundle_options
@ssh_options
@json_option
@service_options
@click.pass_obj
def add(
    home: Path,
    /,
    service: ServiceAddress,
    hosts: tuple[str, ...],
    start: bool,
    allow: Sequence[str],
    allow_any: bool,
    unchanged: bool,
    files: Path | None,
    replace: bool,
    update: bool,
    as_json: bool,
    **reaching: Any,
) -> None:
    """Put the agent on machines over SSH, start it, and start the shipped collectors.

    Each agent gets its own token, valid only for its node; an https service's --ca-file goes with it, and
    --ca-file '' takes back the one it has. A machine where somebody else runs the agent, such as systemd, has a file
    `supervised` in the agent's directory: there nodewise only ends the agent, and the supervisor starts it again with
    the new files.

    \b
    Example:
      nodewise node add -F ~/.nodewise/cluster/ssh/config 127.0.1.11 127.0.1.12
      nodewise node add --unchanged --json worker1 worker2
    """
    client = service.client(home)
    options = _remote_options(service, allow=allow, allow_any=allow_any, **reaching)
    _check_way_back(client.url, hosts, options)
    roster, scheme = Roster.of(client), client.agents_scheme()
    shipped = register_shipped(client, update)
    with temporary_bundle(home, files, replace) as content:
        enrolling = _Enrolling(client, roster, options, content, shipped if start else [], unchanged)
        results = on_hosts("enrolling", hosts, enrolling.take_in)
    tell(results, as_json, enrolling.line)
    _warn_of_scheme(results, scheme)
    end(results)


def _remote_options(service: ServiceAddress, allow: Sequence[str], allow_any: bool, **reaching: Any) -> RemoteOptions:
    # Paramiko takes half a second to import, which only the commands that use it should cost.
    from infosvc.shipping.remote import RemoteOptions

    return RemoteOptions(
        allow=tuple(filter(None, allow)) if allow else None,
        allow_any=allow_any,
        ca_file=_authority(service),
        **given_options(reaching),
    )


def _authority(service: ServiceAddress) -> Path | None:
    """What agents are told of the service's authority; one that speaks no https needs none, but may take one back."""
    return service.ca_file if "https:" in service.url or service.ca_file == NOTHING else None


def _warn_of_scheme(results: Mapping[str, Installed | InfoError], called_by: str) -> None:
    """Name the nodes whose agents the service cannot call, because one of the two speaks https and the other not."""
    odd = [host for host, done in results.items() if not isinstance(done, InfoError) and done.scheme != called_by]
    if not odd:
        return
    remedy = "serve with --agent-ca FILE" if called_by == "http" else "enrol them with --tls-dir DIRECTORY"
    spoken = "https" if called_by == "http" else "http"
    click.echo(
        f"Warning: the agents of {', '.join(odd)} speak {spoken}, and the service calls them by {called_by}, so it "
        f"cannot tell them what changes or read their logs: {remedy}",
        err=True,
    )


@dataclass
class _Enrolling:
    """One `node add`: what every host is given, and how many slots were started on each."""

    client: InfoClient
    roster: Roster
    options: RemoteOptions
    content: Bundle
    names: Sequence[str]
    unchanged: bool
    started: dict[str, int] = field(default_factory=dict)

    def take_in(self, host: str) -> Installed:
        from infosvc.shipping.remote import Machine

        with Machine(host, self.options) as machine:
            installed = self._left_alone(machine) if self.unchanged else None
            if installed is None:
                with Admission(self.client, self.roster, host) as admission:
                    installed = machine.install(self.content, self.client.url, admission.admit)
        self.started[host] = start_missing(self.client, host, self.names)
        return replace(installed, changed=installed.changed or self.started[host] > 0)

    def line(self, done: Installed) -> str:
        alone = "" if done.changed else ", unchanged"
        return f"agent {done.agent_version} at {done.address}, {self.started[done.node_name]} slots started{alone}"

    def _left_alone(self, machine: Machine) -> Installed | None:
        """The agent, when it is as it is to be and the service hears it: its token is good then."""
        known, installed = self.roster.nodes.get(machine.node_name), machine.as_it_is(self.content, self.client.url)
        if known is None or installed is None or known.state != "ready":
            return None
        reported = (known.address, known.agent_version)
        return installed if reported == (installed.address, installed.agent_version) else None


def _check_way_back(url: str, hosts: Sequence[str], options: RemoteOptions) -> None:
    """InvalidInput when a machine elsewhere would be told to report to a loopback address, which is its own."""
    from infosvc.shipping.ssh import route

    if not any(is_loopback(urlsplit(one).hostname or "") for one in url.split(",")):
        return
    for host in hosts:
        with suppress(OSError, UnicodeError):  # a name that leads nowhere is refused when it is connected to
            addresses = socket.getaddrinfo(route(host, options.ssh_config).address, None)
            if not is_loopback(str(addresses[0][4][0])):
                raise InvalidInput(
                    f"{host} cannot reach {url}",
                    "url",
                    remedy="serve with --host ADDRESS and give --url http://ADDRESS:PORT",
                )
