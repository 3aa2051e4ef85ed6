"""`nodewise audit`: who changed what, who was refused, and whether the record is whole."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import click

from infosvc.access.audit import Chain
from infosvc.commands import show
from infosvc.commands.options import json_option, service_options
from infosvc.commands.staying import AWAY
from infosvc.wire.answers import AuditEntry
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Conflict
from infosvc.wire.service_options import ServiceAddress

COLUMNS = ("sequence", "at", "who", "address", "call", "status", "detail")
SHOWN_DETAIL = 80
PAGE = 1_000
FOLLOW_SECONDS = 1.0  # between two looks for what was added


@click.group()
def audit() -> None:
    """See every change and every refused call, and prove that none was altered.

    \b
    Example:
      nodewise audit list
    """


@audit.command("list")
@click.option("--since", type=click.IntRange(min=0), default=0, help="Only entries after this number.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many entries.  [default: all]")
@click.option(
    "-f", "--follow", "follows", is_flag=True, help="Also print entries that are added, until Ctrl-C or --limit."
)
@json_option
@service_options
@click.pass_obj
def list_all(home: Path, service: ServiceAddress, since: int, limit: int | None, follows: bool, as_json: bool) -> None:
    """List the entries, oldest first. --follow prints one a line, and with --json one object a line.

    \b
    Examples:
      nodewise audit list --since 1200 --json
      nodewise audit list --follow
    """
    if follows:
        try:
            _follow(service.client(home), since, limit, as_json)
        except KeyboardInterrupt:
            click.echo()
        return
    found = [entry for page in _pages(service.client(home), since, limit) for entry in page]
    if as_json:
        show.as_json([entry.to_json() for entry in found])
    else:
        show.as_table(COLUMNS, [_row(entry) for entry in found], "no entry")


def _follow(client: InfoClient, since: int, limit: int | None, as_json: bool) -> None:
    """Print entries as they are added, `limit` at most; while the service is away, say so once and go on trying."""
    told, begun, silent = 0, False, False
    while True:
        try:
            for page in _pages(client, since, None if limit is None else limit - told):
                for entry in page:
                    click.echo(json.dumps(entry.to_json()) if as_json else _line(entry))
                since, told = max(since, page[-1].sequence), told + len(page)
            begun, silent = True, False
        except AWAY as error:
            if not begun:
                raise
            if not silent:
                click.echo(show.plain(f"nothing comes for now: {error}"), err=True)
            silent = True
        if told == limit:
            return
        time.sleep(FOLLOW_SECONDS)


def _line(entry: AuditEntry) -> str:
    return show.plain("  ".join(str(item) for item in _row(entry)))


def _parse_position(_context: click.Context, _option: click.Parameter, text: str | None) -> tuple[int, str] | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d{1,18}):([0-9a-f]{64})", text)
    if not found:
        raise click.BadParameter(f"{text!r} is not NUMBER:HASH as this command prints it")
    return int(found[1]), found[2]


@audit.command()
@click.option("--noted", callback=_parse_position, help="NUMBER:HASH that this command printed earlier.")
@json_option
@service_options
@click.pass_obj
def verify(home: Path, service: ServiceAddress, noted: tuple[int, str] | None, as_json: bool) -> None:
    """Compute the chain of hashes anew; exit 1 and name the first entry that was altered, removed or cut off.

    While the service runs, it notices when the log is cut short. To notice it after a restart too, keep the output of
    this command in another place, and pass it with --noted.

    \b
    Examples:
      nodewise audit verify
      nodewise audit verify --noted 1200:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef
    """
    chain = Chain(noted)
    for page in _pages(service.client(home), 0, None):
        if not chain.follow(page):
            break
    chain.end()
    if as_json:
        show.as_json({"entries": chain.sequence, "hash": chain.hash, "broken": chain.broken})
    if chain.broken:
        raise Conflict(f"the audit log is not whole: {chain.broken}")
    if not as_json:
        click.echo(f"whole, {chain.sequence} entries; the last is {chain.sequence}:{chain.hash}")


def _pages(client: InfoClient, since: int, limit: int | None) -> Iterator[list[AuditEntry]]:
    """The entries after one, in parts that the service answers in one call."""
    left = limit
    while left is None or left > 0:
        asked = PAGE if left is None else min(PAGE, left)
        page = client.audit(since, asked)
        if not page:
            return
        yield page
        # A log that was tampered with may repeat numbers, and must not keep us here.
        since = max(since + 1, page[-1].sequence)
        left = None if left is None else left - len(page)


def _row(entry: AuditEntry) -> list[object]:
    detail = entry.detail if len(entry.detail) <= SHOWN_DETAIL else entry.detail[:SHOWN_DETAIL] + "..."
    return [entry.sequence, show.moment(entry.at), entry.who, entry.address, entry.call, entry.status, detail]
