"""`nodewise audit`: who changed what, who was refused, and whether the record is whole."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import click

from infosvc.access.audit_chain import POSITION, Chain
from infosvc.access.audit_key import FILE, AuditKey, read_key
from infosvc.commands import show
from infosvc.commands.options import Moment, json_option, service_options
from infosvc.wire.answers import AuditEntry
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import AWAY, Conflict, InvalidInput
from infosvc.wire.service_options import ServiceAddress, token_path

COLUMNS = ("sequence", "at", "who", "address", "call", "status", "detail")
SHOWN_DETAIL = 80
PAGE = 1_000
FOLLOW_SECONDS = 1.0  # between two looks for what was added


@click.group()
def audit() -> None:
    """See every change, log-in and refused call, and prove that no entry was altered.

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
    entries = [entry for page in _pages(service.client(home), since, limit) for entry in page]
    if as_json:
        show.as_json([entry.to_json() for entry in entries])
    else:
        show.as_table(COLUMNS, [_row(entry) for entry in entries], "no entry")


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
    match = POSITION.fullmatch(text)
    if not match:
        raise click.BadParameter(f"{text!r} is not NUMBER:HASH as this command prints it")
    return int(match[1]), match[2]


@audit.command()
@click.option("--noted", callback=_parse_position, help="NUMBER:HASH that this command printed earlier.")
@click.option(
    "--key-file",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="The key of the log.  [default: audit.key beside the token file, if it is there]",
)
@json_option
@service_options
@click.pass_obj
def verify(
    home: Path, service: ServiceAddress, noted: tuple[int, str] | None, key_file: Path | None, as_json: bool
) -> None:
    """Compute the chain of hashes anew; exit 1 and name the first entry that was altered, removed or cut off.

    With the key of the log, which the service keeps beside its token file, this proves that nobody without the key
    has altered an entry or removed one before another. It does not prove this of whoever can read the key: the user
    who runs the service, and root. Entries that an earlier version made have no key; they are proven to be those that
    stood there when the key was made.

    While the service runs, it notices when the log is cut short. To notice it after a restart too, keep the output of
    this command in another place, and pass it with --noted.

    \b
    Examples:
      nodewise audit verify
      nodewise audit verify --noted 1200:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef
      nodewise audit verify --key-file /mnt/safe/audit.key
    """
    chain = Chain(noted, _key(home, service, key_file))
    for page in _pages(service.client(home), 0, None):
        if not chain.follow(page):
            break
    chain.end()
    if as_json:
        said = ("hash", "broken", "pruned_to", "unproven_from")
        show.as_json({"entries": chain.sequence} | {name: getattr(chain, name) for name in said})
    if chain.broken:
        raise Conflict(f"the audit log is not whole: {chain.broken}")
    if chain.unproven_from:
        raise InvalidInput(
            f"the entries from {chain.unproven_from} on are sealed with a key that is not here",
            "key_file",
            remedy="run this where the service runs, or name a copy of its audit.key with --key-file",
        )
    if not as_json:
        pruned = f", those up to {chain.pruned_to} pruned" if chain.pruned_to else ""
        click.echo(f"whole, {chain.sequence} entries{pruned}; the last is {chain.sequence}:{chain.hash}")


def _key(home: Path, service: ServiceAddress, file: Path | None) -> AuditKey | None:
    return read_key(file or token_path(home, service.token_file).with_name(FILE))


@audit.command()
@click.option("--before", type=Moment(), required=True, help="Remove entries older than this: 90d, or Unix seconds.")
@service_options
@click.pass_obj
def prune(home: Path, service: ServiceAddress, before: float) -> None:
    """Remove the oldest entries of the log; what stays can still be proven whole.

    An entry of the log says up to which one it was pruned. To keep a copy, run `nodewise audit list --json` first.

    \b
    Example:
      nodewise audit prune --before 90d
    """
    client, last = service.client(home), None
    while removed := client.prune_audit(before):
        last = removed
    click.echo(f"removed the entries up to {last}" if last else "no entry is so old")


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
