"""`nodewise cluster`: a real Hadoop on this machine."""

from __future__ import annotations

import json
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any, Unpack

import click
from rich.console import Console
from rich.table import Table

from hadoop.errors import HadoopError
from hadoop.local import lifecycle, variables
from hadoop.local.lifecycle import Cluster, Say
from hadoop.local.planning import Wanted
from hadoop.local.state import PROTECTIONS


class NumberList(click.ParamType[tuple[int, ...]]):
    """Reads `0,0,0,1` as a number for each node; an empty text means none."""

    name = "numbers"

    def __init__(self, what: str) -> None:
        self._what = what

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Parse the text."""
        if isinstance(value, tuple):
            return value
        try:
            found = tuple(int(one) for one in value.split(",")) if value else ()
        except ValueError:
            found = (-1,)
        if min(found, default=0) < 0:
            self.fail(f"{value!r} is not a list of {self._what} such as 0,0,0,1", param, ctx)
        return found


@click.group()
def cluster() -> None:
    """Run a real Hadoop on this machine: NameNode, ResourceManager, nodes with DataNode, NodeManager and sshd.

    \b
    Example:
      nodewise cluster up --nodes 4
      nodewise cluster down
    """


@cluster.command()
@click.option("--nodes", type=int, help="Number of nodes.  [default: 4, later the last value]")
@click.option(
    "--subnet", metavar="127.0.K", help="Loopback addresses to use.  [default: the first free, later the last value]"
)
@click.option(
    "--cpus",
    type=NumberList("CPU numbers"),
    metavar="0,0,0,1",
    help="Pin each node to one CPU, which makes nodes uneven.",
)
@click.option(
    "--gpus",
    type=NumberList("numbers of GPUs"),
    metavar="0,0,0,1",
    help="How many GPUs YARN counts on each node, as yarn.io/gpu.  [default: none, later the last value]",
)
@click.option(
    "--jars",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of Hadoop's jars, of another version too, for daemons and clients.  "
    "[default: those of this installation, later the last value]",
)
@click.option(
    "--plugin/--no-plugin",
    default=None,
    help="Whether YARN orders nodes by measured values, for each program if it has an order of its own, as "
    "nodewise-policy.properties beside the site files says.  "
    "[default: no, later the last value]",
)
@click.option(
    "--mapreduce/--no-mapreduce",
    default=None,
    help="Whether it runs MapReduce, too: then its NodeManagers listen on all addresses of this machine.  "
    "[default: as before, at first not]",
)
@click.option(
    "--kerberos/--no-kerberos",
    default=None,
    help="Whether everybody shows a ticket, of a Kerberos that is started, too.  [default: as before, at first not]",
)
@click.option(
    "--principal",
    "principals",
    metavar="NAME",
    multiple=True,
    help="A user who gets a keytab and a home in HDFS; you have both. Give it again for another one.",
)
@click.option(
    "--protection",
    type=click.Choice(PROTECTIONS),
    help="What is protected of all that is sent with Kerberos.  [default: authentication, later the last value]",
)
@click.option(
    "--token-life",
    "token_seconds",
    type=click.IntRange(10, 86_400),
    metavar="SECONDS",
    help="How long a token of HDFS or YARN is good unless it is renewed, to see what does that.  "
    "[default: a day, later the last value]",
)
@click.option(
    "--ha/--no-ha",
    default=None,
    help="Whether there are two NameNodes and two ResourceManagers, of which one takes over when the other fails.  "
    "[default: as before, at first not]",
)
@click.option(
    "--wait",
    "ready_seconds",
    type=click.IntRange(1, 86_400),
    metavar="SECONDS",
    default=int(lifecycle.READY_SECONDS),
    show_default=True,
    help="How long its daemons may take until all of it works; a slow machine needs longer.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the cluster as JSON.")
@click.pass_obj
def up(home: Path, ready_seconds: int, as_json: bool, **wanted: Unpack[Wanted]) -> None:
    """Start the cluster and wait until it works; on a running one, start what is missing.

    \b
    Example:
      nodewise cluster up --nodes 4
      nodewise cluster up --kerberos --ha --principal alice
      nodewise cluster up --wait 600        # on a slow machine
    """
    begun = time.monotonic()
    with _show_progress() as say, _unwind_on_signals():
        started = lifecycle.up(home, say=say, ready_seconds=ready_seconds, **wanted)
    if as_json:
        click.echo(json.dumps(_as_dict(started), indent=2))
        return
    click.echo(f"Ready after {time.monotonic() - begun:.1f} s: {started.size} nodes, {started.namenode_url}")
    click.echo(f"Pages: {' '.join(started.pages)}  Logs: {started.logs}  Stop: nodewise cluster down")


@cluster.command()
@click.pass_obj
def down(home: Path) -> None:
    """Stop the cluster: end every process it started, also after a crash; its data stay.

    \b
    Example:
      nodewise cluster down
    """
    with _show_progress() as say:
        say("Stopping the cluster")
        ended = lifecycle.down(home)
    click.echo(f"The cluster is stopped: {ended} processes ended" if ended else "No process of this cluster is running")


@cluster.command()
@click.option("--json", "as_json", is_flag=True, help="Print the cluster as JSON.")
@click.option("--names", is_flag=True, help="Print the nodes' names, one a line, and nothing else.")
@click.pass_obj
def status(home: Path, as_json: bool, names: bool) -> None:
    """Show every daemon of the cluster, and each node's mounter of environments, and whether it does its work.

    The cluster is running without mounters, too: then each program mounts its environment for itself.

    \b
    Example:
      ssh -F ~/.nodewise/cluster/ssh/config $(nodewise cluster status --names | head -1)
    """
    found = lifecycle.load(home)
    if names:
        click.echo("\n".join(found.nodes))
    elif as_json:
        click.echo(json.dumps(_as_dict(found), indent=2))
    else:
        _show(_as_dict(found))


@cluster.command()
@click.option("--principal", metavar="NAME", help="Whose tickets with Kerberos.  [default: yours]")
@click.pass_obj
def env(home: Path, principal: str | None) -> None:
    """Print what a shell needs to use the cluster: its site files, and with Kerberos its realm and your tickets.

    \b
    Example:
      eval "$(nodewise cluster env)"
      eval "$(nodewise cluster env --principal alice)" && kinit -k -i
    """
    for name, value in variables.of(lifecycle.load(home), principal).items():
        click.echo(f"export {name}={value if name == 'PATH' else shlex.quote(value)}")


def _as_dict(cluster: Cluster) -> dict[str, Any]:
    """The cluster as `--json` prints it; its state is running, degraded or stopped."""
    daemons = lifecycle.status(cluster)
    alive = [daemon for daemon in daemons if daemon.pid]
    state = "running" if all(daemon.ready for daemon in daemons) else "degraded" if alive else "stopped"
    pinned = cluster.cpus or (None,) * cluster.size
    return {
        "state": state,
        "home": str(cluster.home),
        "user": cluster.user,
        "namenode_url": cluster.namenode_url,
        "namenode_http": cluster.namenode_http,
        "rm_http": cluster.rm_http,
        "pages": cluster.pages,
        "conf_dir": str(cluster.conf_dir),
        "ssh_config": str(cluster.ssh_config),
        "logs": str(cluster.logs),
        "nodes": [{"node_name": node, "cpu": cpu} for node, cpu in zip(cluster.nodes, pinned, strict=True)],
        "daemons": [asdict(daemon) for daemon in daemons],
        "mounters": [asdict(mounter) for mounter in lifecycle.status_of_mounters(cluster)],
    }


def _show(cluster: dict[str, Any]) -> None:
    table = Table(title=f"Cluster under {cluster['home']}: {cluster['state']}", title_justify="left")
    for column in ("daemon", "node", "pid", "state"):
        table.add_column(column)
    for daemon in [*cluster["daemons"], *cluster["mounters"]]:
        state = "ready" if daemon["ready"] else "not ready" if daemon["pid"] else "stopped"
        state += f", {daemon['role']}" if daemon["role"] else ""
        table.add_row(daemon["kind"], daemon["node"] or "master", str(daemon["pid"] or ""), state)
    Console().print(table)
    click.echo(f"HDFS {cluster['namenode_url']}  pages {' '.join(cluster['pages'])}")
    click.echo(f"HADOOP_CONF_DIR={cluster['conf_dir']}  ssh -F {cluster['ssh_config']}")


@contextmanager
def _show_progress() -> Iterator[Say]:
    """Show progress on stderr: one changing line on a terminal, else a line for each piece of news."""
    console = Console(stderr=True)
    begun = time.monotonic()
    if not console.is_terminal:
        lines: list[str] = []

        def say(text: str) -> None:
            if lines[-1:] != [text]:
                lines.append(text)
                click.echo(f"{text} ({time.monotonic() - begun:.0f} s)", err=True)

        yield say
        return
    with console.status("") as line:
        yield lambda text: line.update(f"{text} ({time.monotonic() - begun:.0f} s)")


@contextmanager
def _unwind_on_signals() -> Iterator[None]:
    """Let SIGTERM and a closed terminal unwind like Ctrl-C, so that a stopped start cleans up too."""

    def stop(signum: int, _frame: FrameType | None) -> None:
        sys.exit(128 + signum)

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    except KeyboardInterrupt:
        raise HadoopError("interrupted: everything that this start had begun is ended") from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
