"""What `node add` and `producer push` share: how to reach machines, what goes there, and what came of it on each."""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from infosvc.commands import show
from infosvc.shipping import bundle
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import InfoError, NotReady

if TYPE_CHECKING:
    from infosvc.shipping.remote import Installed

F = TypeVar("F", bound=Callable[..., Any])

FILE = click.Path(dir_okay=False, path_type=Path)
DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)


def ssh_options(command: F) -> F:
    """How to reach the machines; arrive under the names of RemoteOptions, None where not given."""
    for option in (
        click.option(
            "--directory",
            help="Directory on each machine; {node} stands for the node's name.  [default: .nodewise/agents/{node}]",
        ),
        click.option("--known-hosts", type=FILE, help="Host keys to trust; others are refused."),
        click.option("--identity", type=FILE, help="Private key to log in with."),
        click.option("--user", help="Login on the machines."),
        click.option("-F", "--ssh-config", type=FILE, help="OpenSSH client configuration to read."),
    ):
        command = option(command)
    return command


def bundle_options(command: F) -> F:
    """What goes to the machines; arrive as `files`, `replace` and `update`."""
    for option in (
        click.option(
            "--update",
            is_flag=True,
            help="Also replace changed registrations by the shipped ones. Deletes your own producer, its slots and "
            "values, if a shipped producer emits its name.",
        ),
        click.option("--replace", is_flag=True, help="Let own files take the place of those that ship."),
        click.option(
            "--files",
            type=DIRECTORY,
            envvar="NODEWISE_FILES",
            help="Own scripts/*.sh and processors/*.py to push as well.  "
            "[env: NODEWISE_FILES; default: HOME/files where it exists]",
        ),
    ):
        command = option(command)
    return command


def given_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, for RemoteOptions, which knows the defaults of the others."""
    return {key: value for key, value in options.items() if value is not None}


@contextmanager
def temporary_bundle(home: Path, files: Path | None = None, replace: bool = False) -> Iterator[bundle.Bundle]:
    """What is pushed, in a directory below home that lives as long as the block."""
    if files is None and (home / "files").is_dir():
        files = home / "files"
    with ExitStack() as held:
        try:
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            directory = held.enter_context(tempfile.TemporaryDirectory(prefix="bundle-", dir=home))
            made = bundle.build(Path(directory) / "files", files, replace)
        except OSError as error:
            raise NotReady(
                f"what is pushed cannot be written below {home} ({error})", remedy="make room, or choose another --home"
            ) from error
        yield made


def register_shipped(client: InfoClient, update: bool) -> list[str]:
    """Register what ships, complain on stderr about what cannot be; the names that run on every node from the start."""
    from infosvc.shipping.catalog import register

    done = register(client, update)
    if done.forgotten:
        names = ", ".join(sorted(done.forgotten))
        click.echo(f"deleted with slots and values, because a shipped producer emits the name: {names}", err=True)
    if done.differing:
        click.echo(
            f"registration differs from the shipped one: {', '.join(sorted(done.differing))}; --update replaces it",
            err=True,
        )
    for name, reason in sorted(done.refused.items()):
        click.echo(f"{name} ships, but is not registered: {reason}; --update deletes the other producer", err=True)
    return done.autostart


def on_hosts(title: str, hosts: Sequence[str], work: Callable[[str], Installed]) -> dict[str, Installed | InfoError]:
    """Do the work for all hosts with a progress bar on stderr."""
    from rich.console import Console
    from rich.progress import Progress

    from infosvc.shipping import remote

    # It logs a traceback for what it also raises.
    logging.getLogger("paramiko").setLevel(logging.CRITICAL)
    quiet = not sys.stderr.isatty()
    with Progress(console=Console(stderr=True), transient=True, disable=quiet) as progress:
        bar = progress.add_task(title, total=len(hosts))
        return remote.on_hosts(hosts, work, lambda _host, _result: progress.advance(bar))


def tell(results: Mapping[str, Installed | InfoError], as_json: bool, line: Callable[[Installed], str]) -> None:
    """Say what came of each host."""
    if as_json:
        show.as_json({host: _as_json(result) for host, result in results.items()})
    for host, result in results.items():
        if isinstance(result, InfoError):
            click.echo(f"{host}: {result}", err=True)
        elif not as_json:
            click.echo(f"{host}: {line(result)}")


def end(results: Mapping[str, Installed | InfoError]) -> None:
    """Exit 1 when it failed for any host."""
    if any(isinstance(result, InfoError) for result in results.values()):
        sys.exit(1)


def _as_json(result: Installed | InfoError) -> dict[str, Any]:
    if isinstance(result, InfoError):
        return {"ok": False, "version": None, "changed": False, "error": str(result)}
    return {"ok": True, "version": result.agent_version, "changed": result.changed, "error": None}
