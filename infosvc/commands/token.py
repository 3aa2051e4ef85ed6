"""`nodewise token`: who may call the service, and as what."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click

from infosvc.commands import show
from infosvc.commands.options import for_each, json_option, service_options
from infosvc.commands.spans import Span
from infosvc.wire.answers import Token
from infosvc.wire.errors import InvalidInput
from infosvc.wire.records import Role
from infosvc.wire.service_options import ServiceAddress

COLUMNS = ("token_id", "name", "role", "node_name", "created", "expires", "revoked")


@click.group()
def token() -> None:
    """Make, list and revoke the tokens that callers show.

    \b
    Example:
      nodewise token create grafana --role reader --expires-in 30d
    """


@token.command()
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice([role.value for role in Role if role is not Role.TASK]),
    callback=lambda _context, _option, role: Role(role),
    required=True,
    help="reader: read. agent: report for --node. processor: write values. scheduler: also start and stop slots. "
    "user: have tasks of its own. submitter: run the tasks of all. admin: everything.",
)
@click.option(
    "--node",
    "node_name",
    help="Node whose agent gets the token, for role agent; or the only node whose values it reads, for role reader.",
)
@click.option("--expires-in", type=Span(), help="Time until the service refuses it: 900, 90m, 12h or 30d.  [never]")
@click.option("--replace", is_flag=True, help="Revoke the older tokens of this role and --node.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the token into this new file, mode 0600, instead of showing it.",
)
@json_option
@service_options
@click.pass_obj
def create(
    home: Path,
    /,
    service: ServiceAddress,
    name: str,
    out: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Make a token named NAME; the audit log calls its holder by this name. The token is shown only this once.

    The NAME of a token of role user is whose tasks it submits: all tokens of one NAME are one user.

    \b
    Examples:
      nodewise token create maria --role user --out maria.token
      nodewise token create yarn --role scheduler --out /etc/nodewise/scheduler.token
      nodewise token create worker1 --role agent --node worker1 --replace --json
    """
    client = service.client(home)
    if out is None:
        made, text = client.create_token(name, **given)
        show.as_json(made.to_json() | {"token": text}) if as_json else click.echo(text)
        return
    with _new_file(out) as file:
        made, text = client.create_token(name, **given)
        file.write(text + "\n")
    if as_json:
        show.as_json(made.to_json() | {"file": str(out)})
    else:
        click.echo(f"{made.name}: token {made.token_id} of role {made.role} written to {out}")


@token.command("list")
@json_option
@service_options
@click.pass_obj
def list_all(home: Path, service: ServiceAddress, as_json: bool) -> None:
    """List all tokens, without their secret text.

    \b
    Example:
      nodewise token list --json
    """
    tokens = service.client(home).tokens()
    if as_json:
        show.as_json([item.to_json() for item in tokens])
    else:
        show.as_table(COLUMNS, [_row(item) for item in tokens], "no token but the first admin's, in the token file")


@token.command()
@click.argument("token_ids", nargs=-1, required=True)
@service_options
@click.pass_obj
def revoke(home: Path, service: ServiceAddress, token_ids: tuple[str, ...]) -> None:
    """Revoke tokens by their TOKEN_IDS at once and for good; an agent whose token is revoked ends.

    \b
    Example:
      nodewise token revoke 1f0c9a52d7b38e64
    """
    client = service.client(home)

    def take_back(token_id: str) -> str:
        client.revoke_token(token_id)
        return "revoked"

    for_each(token_ids, take_back)


@contextmanager
def _new_file(path: Path) -> Iterator[IO[str]]:
    """Made before the token, so that none is lost for want of a file; gone again when there is no token for it."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be made ({error.strerror})", "out", remedy="name a new file with --out"
        ) from error
    with os.fdopen(descriptor, "w") as file:
        try:
            yield file
        except BaseException:
            path.unlink()
            raise


def _row(item: Token) -> list[str | None]:
    made, ends, revoked = (
        show.moment(item.created_at, ""),
        show.moment(item.expires_at),
        show.moment(item.revoked_at, ""),
    )
    return [
        item.token_id, item.name, item.role, item.node_name, made, ends, revoked
    ]  # fmt: skip
