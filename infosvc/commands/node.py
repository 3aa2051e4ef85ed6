"""`nodewise node`: the machines that run collectors and processors."""

from __future__ import annotations

import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
from rich.console import Console
from rich.progress import Progress

from infosvc import bundle
from infosvc.client import InfoClient, read_token
from infosvc.commands import show
from infosvc.commands.options import connect, for_each, is_loopback, json_option, service_options
from infosvc.errors import InfoError, InvalidInput, NotReady, Unauthorized
from infosvc.records import Scope, check_node_name

if TYPE_CHECKING:
    from infosvc.remote import Enrolled, RemoteOptions

FILE = click.Path(dir_okay=False, path_type=Path)


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
def list_all(home: Path, url: str, token_file: Path | None, as_json: bool) -> None:
    """List all nodes: ready, stale (silent for some seconds) or lost.

    \b
    Example:
      nodewise node list --json
    """
    found = connect(home, url, token_file).nodes()
    if as_json:
        show.as_json([item.to_json() for item in found])
    else:
        columns = ("node", "state", "last seen", "address", "agent")
        rows = [(n.node_name, n.state, show.moment(n.last_seen), n.address, n.agent_version) for n in found]
        show.as_table(columns, rows, "no node is enrolled: add one with `nodewise node add HOST`")


@node.command("rm")
@click.argument("names", nargs=-1, required=True)
@service_options
@click.pass_obj
def remove(home: Path, url: str, token_file: Path | None, names: tuple[str, ...]) -> None:
    """Stop the agents of nodes and forget the nodes, their slots and their values.

    \b
    Example:
      nodewise node rm 127.0.1.14
    """
    client = connect(home, url, token_file)

    def forget(name: str) -> str:
        client.delete_node(check_node_name(name))
        return "forgotten"

    for_each(names, forget)


@node.command()
@click.argument("hosts", nargs=-1, required=True)
@click.option("-F", "--ssh-config", type=FILE, help="OpenSSH client configuration to read.")
@click.option("--user", help="Login on the machines.")
@click.option("--identity", type=FILE, help="Private key to log in with.")
@click.option("--known-hosts", type=FILE, help="Host keys to trust; others are refused.")
@click.option("--directory", help="Where things go, {node} is its name.  [default: .nodewise/agents/{node}]")
@click.option("--port", "agent_port", type=click.IntRange(1, 65535), help="Port of the agent.  [default: 8410]")
@click.option(
    "--allow",
    multiple=True,
    help="Directory of the machine whose programs may run as well; repeatable. Without it, those allowed before stay.",
)
@click.option("--start/--no-start", default=True, show_default=True, help="Start the collectors that ship.")
@service_options
@click.pass_obj
def add(
    home: Path,
    /,
    url: str,
    token_file: Path | None,
    hosts: tuple[str, ...],
    start: bool,
    allow: Sequence[str],
    **given: Any,
) -> None:
    """Put the agent on machines over SSH, start it, and let it run what ships.

    \b
    Example:
      nodewise node add -F ~/.nodewise/cluster/ssh/config 127.0.1.11 127.0.1.12
    """
    # Paramiko takes half a second to import, which only this command should cost.
    from infosvc.remote import RemoteOptions

    client, token = connect(home, url, token_file), read_token(home, token_file)
    if token is None:
        raise Unauthorized("enrolling needs the service's token: name its file with --token-file")
    options = RemoteOptions(allow=tuple(allow), **{key: value for key, value in given.items() if value is not None})
    hosts = tuple(dict.fromkeys(hosts))
    _check_way_back(client.url, hosts, options)
    shipped = _register_shipped(client)
    results = _enrol(home, hosts, options, client.url, token)

    def take_in(host: str) -> str:
        result = results[host]
        if isinstance(result, InfoError):
            raise result
        client.put_node(result.node_name, result.address, result.agent_version)
        started = _start(client, result.node_name, shipped) if start else 0
        return f"agent {result.agent_version} at {result.address}, {started} slots started"

    for_each(results, take_in)


def _check_way_back(url: str, hosts: Sequence[str], options: RemoteOptions) -> None:
    """InvalidInput when a machine elsewhere would be told to report to a loopback address, which is its own."""
    from infosvc.ssh import route

    if not is_loopback(urlsplit(url).hostname or ""):
        return
    for host in hosts:
        with suppress(OSError, UnicodeError):  # a name that leads nowhere is refused when it is connected to
            found = socket.getaddrinfo(route(host, options.ssh_config).address, None)
            if not is_loopback(str(found[0][4][0])):
                raise InvalidInput(
                    f"{host} cannot reach {url}: serve with --host ADDRESS and give --url http://ADDRESS:PORT", "url"
                )


def _register_shipped(client: InfoClient) -> list[str]:
    """Register what ships and is not yet registered; returns the names that run on every node from the start."""
    known = {producer.data_name for producer in client.producers()}
    entries = bundle.catalog()
    for entry in entries:
        if entry.producer.data_name not in known:
            client.put_producer(entry.producer)
    return [e.producer.data_name for e in entries if e.autostart and e.producer.scope is Scope.NODE]


def _enrol(
    home: Path, hosts: Sequence[str], options: RemoteOptions, url: str, token: str
) -> dict[str, Enrolled | InfoError]:
    """Push and launch on all hosts with a progress bar on stderr."""
    from infosvc import remote

    lock = threading.Lock()
    quiet = not sys.stderr.isatty()
    with (
        _bundled(home) as files,
        Progress(console=Console(stderr=True), transient=True, disable=quiet) as progress,
    ):
        bar = progress.add_task("enrolling", total=len(hosts))

        def on_done(_host: str, _result: Enrolled | InfoError) -> None:
            with lock:
                progress.advance(bar)

        return remote.enrol(hosts, options, files, url, token, on_done)


@contextmanager
def _bundled(home: Path) -> Iterator[bundle.Bundle]:
    """What is pushed, in a directory below home that lives as long as the block."""
    with ExitStack() as held:
        try:
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            directory = held.enter_context(tempfile.TemporaryDirectory(prefix="bundle-", dir=home))
            files = bundle.build(Path(directory) / "files")
        except OSError as error:
            raise NotReady(
                f"what is pushed cannot be written below {home} ({error}): make room, or choose another --home"
            ) from error
        yield files


def _start(client: InfoClient, node_name: str, names: Sequence[str]) -> int:
    """Start what the node has no slot for; a slot that somebody stopped stays stopped."""
    there = {slot.data_name for slot in client.slots(node_name).slots}
    missing = [name for name in names if name not in there]
    for name in missing:
        client.put_slot(node_name, name, running=True)
    return len(missing)
