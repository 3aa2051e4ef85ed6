"""`nodewise uninstall`: takes nodewise off nodes, or off this machine, and leaves nothing of it behind."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from infosvc.commands.options import service_options
from infosvc.commands.shipping import given_options, ssh_options
from infosvc.wire.errors import Conflict, InfoError, NotFound, NotReady
from infosvc.wire.service_options import ServiceAddress

if TYPE_CHECKING:
    from infosvc.shipping.remote import RemoteOptions
    from infosvc.wire.client import InfoClient

PARTS = {
    "service": "database, lock and token of the information service",
    "cluster": "the local cluster: HDFS with its data, logs, keys",
    "agents": "agents on this machine, ended first",
    "files": "your own scripts and processors for nodes",
    "blocks": "listings of blocks",
}
"""What lies below the home, by the name of its folder; everything else there is left."""


@click.command()
@click.argument("hosts", nargs=-1)
@click.option("--yes", is_flag=True, help="Remove without asking.")
@ssh_options
@service_options
@click.pass_obj
def uninstall(home: Path, /, service: ServiceAddress, hosts: tuple[str, ...], yes: bool, **reaching: Any) -> None:
    """Take nodewise off the nodes HOSTS over SSH; without HOSTS, off this machine, the master.

    It lists what it would remove, and asks. On a node it ends the agent, removes the agent's folder with its token, and
    has the service forget the node. On the master it ends the local cluster and removes what lies below --home; end
    the service before. Take the nodes first: afterwards no service is there to forget them. A machine that Ansible
    has set up is for ansible/uninstall.yml.

    \b
    Examples:
      nodewise uninstall worker1 worker2
      nodewise uninstall --yes
    """
    if not hosts:
        _leave_master(home, yes)
        return
    from infosvc.shipping.remote import RemoteOptions

    options = RemoteOptions(**given_options(reaching))
    for host in hosts:
        click.echo(f"{host}: the agent in {options.directory.replace('{node}', host)}, its token, its slots and values")
    _confirm(yes)
    _leave_nodes(service.client(home), hosts, options)


def _leave_nodes(client: InfoClient, hosts: Sequence[str], options: RemoteOptions) -> None:
    from infosvc.shipping.remote import Machine, on_hosts

    def leave(host: str) -> str:
        with Machine(host, options) as machine:
            said = "removed" if machine.remove() else "had no agent there"
        with suppress(NotFound):
            client.delete_node(host)
        return said

    results = on_hosts(hosts, leave)
    for host, result in results.items():
        click.echo(f"{host}: {result}", err=isinstance(result, InfoError))
    if any(isinstance(result, InfoError) for result in results.values()):
        sys.exit(1)


def _leave_master(home: Path, yes: bool) -> None:
    found = {home / name: meaning for name, meaning in PARTS.items() if (home / name).exists()}
    found |= dict.fromkeys(sorted(home.glob("bundle-*")), "what a push has left")
    if not found:
        click.echo(f"nothing of nodewise lies in {home}")
        return
    _refuse_running(home / "service")
    for path, meaning in found.items():
        click.echo(f"{path}  ({meaning})")
    _confirm(yes)
    _end_cluster(home)
    for folder in sorted(home.glob("agents/*")):
        _end_agent(folder)
    for path in found:
        _remove(path)
    left = sorted(path.name for path in home.iterdir())
    if left:
        click.echo(f"{home} keeps what is not of nodewise: {', '.join(left)}")
    else:
        home.rmdir()


def _confirm(yes: bool) -> None:
    if not yes:
        click.confirm("Remove this?", abort=True)


def _refuse_running(folder: Path) -> None:
    """Conflict when a service uses a database in this folder."""
    for lock in folder.glob("*.lock"):
        descriptor = os.open(lock, os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Conflict(
                f"the service that uses {lock.with_suffix('')} runs", remedy="end it first, with Ctrl-C or SIGTERM"
            ) from error
        finally:
            os.close(descriptor)


def _end_cluster(home: Path) -> None:
    if (home / "cluster").exists():
        from hadoop.local import lifecycle

        lifecycle.down(home)


def _end_agent(folder: Path) -> None:
    from infosvc.shipping import on_node

    told = on_node.remove(str(folder))
    if "supervised" in told:
        raise Conflict(
            f"a supervisor would start the agent in {folder} again", remedy="disable its unit, then remove `supervised`"
        )
    if "agent" in told:
        raise NotReady(f"{folder.name}: {told['agent']}")


def _remove(path: Path) -> None:
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise NotReady(f"{path} cannot be removed ({error})", remedy="see who owns it, then try again") from error
