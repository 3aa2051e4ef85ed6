"""`nodewise serve`: the service in the foreground until SIGTERM or Ctrl-C."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path

import click

from infosvc.auth import token_from
from infosvc.client import token_path
from infosvc.commands.options import is_loopback, token_option
from infosvc.errors import InvalidInput
from infosvc.settings import Settings


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8400, show_default=True, help="Port; 0 takes a free one."
)
@click.option(
    "--database",
    envvar="NODEWISE_DATABASE",
    help="sqlite:////path.db or mysql+pymysql://USER@HOST:PORT/DATABASE.  "
    "[env: NODEWISE_DATABASE; default: HOME/service/infosvc.db]",
)
@click.option(
    "--database-password-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File with the database's password, which else comes from NODEWISE_DATABASE_PASSWORD.",
)
@token_option
@click.pass_obj
def serve(
    home: Path, host: str, port: int, database: str | None, database_password_file: Path | None, token_file: Path | None
) -> None:
    """Run the information service until it is told to end.

    It keeps which data exists, what runs where and the latest values, and answers over REST; Swagger UI is at
    /api/v1/. The token that writing needs is made on the first start.

    \b
    Examples:
      nodewise serve
      nodewise serve --database mysql+pymysql://infosvc@127.0.0.1/infosvc --database-password-file /root/db-password
    """
    # Flask and SQLAlchemy take a second to import, which only this command should cost.
    from infosvc.app import Server
    from infosvc.store import parse_url

    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    url = parse_url(database or f"sqlite:///{home / 'service' / 'infosvc.db'}", _password(database_password_file))
    path = token_path(home, token_file)
    settings = Settings(database=url.render_as_string(hide_password=False), token=token_from(path))
    server = Server(settings, host, port)
    if not is_loopback(host):
        click.echo(
            f"Warning: {host} can be reached from other machines. Everyone who reaches it can read, and the token "
            "travels unencrypted: keep it inside a network you trust.",
            err=True,
        )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: server.stop())
    click.echo(f"listening on {server.url}, database {url.render_as_string()}, token file {path}")
    server.run()


def _password(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get("NODEWISE_DATABASE_PASSWORD")
    try:
        return file.read_text().rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the database password file {file} cannot be read ({error})") from error
