"""`nodewise login`: exchanges a ticket of Kerberos for a token of the service, in the file where commands look."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

import click

from hadoop.local.files.own_files import write_own
from hadoop.rest import spnego
from infosvc.access.ticket_token import BEGINNING
from infosvc.commands.options import service_options
from infosvc.wire.answers import TokenByTicket
from infosvc.wire.client import DEFAULT_TIMEOUT, InfoClient
from infosvc.wire.connection import place_of
from infosvc.wire.errors import InvalidInput, NotReady, Unreachable
from infosvc.wire.service_options import ServiceAddress, service_timeout, token_path


@click.command()
@service_options
@click.pass_obj
def login(home: Path, service: ServiceAddress) -> None:
    """Log in at the service by your ticket of Kerberos, which `kinit` gets.

    It writes a token of role user into the token file, mode 0600, for the commands that follow. The token counts as
    long as the ticket, and 12 hours at most. A file that holds another token stays as it is. The service must have a
    keytab (`nodewise serve --spnego-keytab`).

    \b
    Examples:
      kinit alice && nodewise login --url https://master:8400
      nodewise login --token-file ~/alice.token
    """
    path = token_path(home, service.token_file)
    _check_file(path)
    made = _exchange(service)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_own(path, f"{made.token}\n".encode())
    except OSError as error:
        raise _file_error(path, error.strerror or str(error)) from error
    until = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(made.expires_at))
    click.echo(f"{made.name}: token of role {made.role} until {until} written to {path}")


def _exchange(service: ServiceAddress) -> TokenByTicket:
    """The token, of the first of several services that is active: each has a ticket of its own."""
    *others, last = service.url.split(",")
    for url in others:
        with suppress(Unreachable, NotReady):
            return _ask(url, service)
    return _ask(last, service)


def _ask(url: str, service: ServiceAddress) -> TokenByTicket:
    shown = spnego.make_token(place_of(url.strip()).host, of="log-ins at the service")
    with InfoClient(url, None, service_timeout(DEFAULT_TIMEOUT), service.authority) as client:
        return client.exchange_ticket(shown)


def _check_file(path: Path) -> None:
    """InvalidInput when a file holds anything but a token of an earlier log-in."""
    try:
        held = path.read_text().strip()
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        raise _file_error(path, str(error)) from error
    if held and not held.startswith(BEGINNING):
        raise _file_error(path, "it holds another token, which would be lost")


def _file_error(path: Path, reason: str) -> InvalidInput:
    return InvalidInput(
        f"the token file {path} cannot be written ({reason})", "token_file", remedy="name another with --token-file"
    )
