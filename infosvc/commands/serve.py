"""`nodewise serve`: the service in the foreground until SIGTERM or Ctrl-C."""

from __future__ import annotations

import gc
import ipaddress
import logging
import os
import re
import signal
import ssl
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from infosvc.access.audit_key import FILE
from infosvc.access.roles import SHORTEST_TOKEN, is_loopback, token_from
from infosvc.access.tickets import check_keytab
from infosvc.commands.options import token_option
from infosvc.settings import Ack, Settings
from infosvc.wire.client import DEFAULT_PORT
from infosvc.wire.connection import place_of
from infosvc.wire.errors import InvalidInput, Unreachable
from infosvc.wire.records import NODE_NAME
from infosvc.wire.service_options import token_path

if TYPE_CHECKING:
    from infosvc.http.api.call_group import CallGroup
    from infosvc.http.server import Server

Command = TypeVar("Command", bound=Callable[..., Any])

FLUSH_SECONDS = 0.5
"""Of a service that shares its database, with --ack fast: what readers see is stored within a second."""

_ADDRESS = re.compile(r"https?://[^/?#@,]+")
_file = click.Path(dir_okay=False, path_type=Path)


def _bytes_option(limit: str, of: str) -> Callable[[Command], Command]:
    """The option of the setting `bytes_<limit>`, a number of bytes."""
    setting = f"bytes_{limit}"
    return click.option(
        f"--{setting.replace('_', '-')}",
        type=click.IntRange(min=0),
        default=getattr(Settings, setting),
        show_default=True,
        help=f"Most bytes of {of}; 0 for any number.",
    )


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="Port; 0 takes a free one."
)
@click.option(
    "--database",
    envvar="NODEWISE_DATABASE",
    help="sqlite:////path.db or mysql+pymysql://USER@HOST:PORT/DATABASE.  "
    "[env: NODEWISE_DATABASE; default: HOME/service/infosvc.db]",
)
@click.option(
    "--database-password-file",
    type=_file,
    help="File with the database's password, which else comes from NODEWISE_DATABASE_PASSWORD.",
)
@click.option(
    "--shared-with",
    metavar="URL",
    default="",
    callback=lambda _context, _option, url: _check_url(url),
    help="Where another service of the same MariaDB is reached: one of them is active, the other takes over.",
)
@click.option(
    "--ack",
    type=click.Choice([policy.value for policy in Ack]),
    callback=lambda _context, _option, policy: Ack(policy),
    default=Ack.DURABLE.value,
    show_default=True,
    help="When a report is acknowledged: after it is stored, or as soon as readers see it.",
)
@click.option(
    "--open-reading/--no-open-reading",
    default=None,
    help="Let callers read without a token; only allowed on loopback.  [default: yes on loopback]",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    callback=lambda _context, _option, names: _check_names(names),
    help="Another name by which this machine is called, which then may be read without a token where reading is open; "
    "may stand several times.",
)
@click.option(
    "--trusted-proxy",
    "trusted_proxies",
    multiple=True,
    callback=lambda _context, _option, addresses: _check_addresses(addresses),
    help="Address of a proxy whose X-Forwarded-For tells the caller's address; may stand several times.",
)
@click.option("--tls-cert", type=_file, help="Certificate chain, PEM; the service then answers https only.")
@click.option("--tls-key", type=_file, help="Private key of that certificate, PEM, mode 0600.")
@click.option(
    "--spnego-keytab",
    type=_file,
    help="Keytab with the key of HTTP/HOST; users of its realm then log in by their ticket (`nodewise login`).",
)
@click.option("--agent-ca", type=_file, help="Authority of the agents' certificates, PEM; then agents speak https.")
@click.option(
    "--calls-per-second",
    type=click.FloatRange(min=0),
    default=Settings.calls_per_second,
    show_default=True,
    help="Most calls of one token, or of one address without a token; 0 for any number.",
)
@click.option(
    "--any-node",
    is_flag=True,
    help="Let tokens of processors and schedulers write what programs write also of nodes that nobody enrolled.",
)
@_bytes_option("per_name", "one name's values that programs may write")
@_bytes_option("per_token", "values that one token may write an hour")
@_bytes_option("in_all", "all values together that programs may write")
@click.option(
    "--task-days",
    type=click.FloatRange(min=0),
    default=Settings.task_days,
    show_default=True,
    help="Days that a task is kept after it has ended, and a run of MLflow after its last change.",
)
@click.option(
    "--most-tasks",
    type=click.IntRange(min=0),
    default=Settings.most_tasks,
    show_default=True,
    help="Most tasks that are kept after they have ended, and most runs of MLflow; then the oldest go.",
)
@click.option(
    "--notify-host",
    "notify_hosts",
    multiple=True,
    callback=lambda _context, _option, names: tuple(name.lower() for name in _check_names(names)),
    help="Host to which users may have messages sent (`task submit --notify`); may stand several times.  [none]",
)
@click.option(
    "--notify-secret-file",
    type=_file,
    help="File, mode 0600, with a word that messages to web addresses are signed with (X-Nodewise-Signature).",
)
@click.option(
    "--policy-file",
    type=_file,
    help="nodewise-policy.properties of YARN's plug-in, which /explain then explains.",
)
@token_option
@click.pass_obj
def serve(
    home: Path,
    /,
    host: str,
    port: int,
    database: str | None,
    database_password_file: Path | None,
    token_file: Path | None,
    others: Callable[[], Sequence[CallGroup]] = tuple,
    beside: Callable[[str, Path], None] = lambda _url, _token_file: None,
    **given: Any,
) -> None:
    """Run the information service until it is told to end.

    It keeps which data exists, what runs where and the latest values, and answers over REST; the dashboard is at /,
    Swagger UI at /api/v1/. The first admin's token is made on the first start; `nodewise token create` makes others.
    Beyond loopback every call needs a token, except for the dashboard's files and for logging in.

    \b
    Examples:
      nodewise serve
      nodewise serve --database mysql+pymysql://infosvc@127.0.0.1/infosvc --database-password-file /root/db-password
      nodewise serve --database mysql+pymysql://infosvc@db/infosvc --shared-with http://master2:8400
      nodewise serve --policy-file /etc/hadoop/conf/nodewise-policy.properties
      nodewise serve --host 0.0.0.0 --tls-cert /etc/nodewise/service.pem --tls-key /etc/nodewise/service.key
    """
    given["open_reading"] = _reading(host, given["open_reading"])
    given |= _tls(given["tls_cert"], given["tls_key"], given["agent_ca"])
    given["spnego_keytab"] = check_keytab(given["spnego_keytab"])
    given |= {"policy_file": _policy(given["policy_file"]), "notify_secret": _secret(given.pop("notify_secret_file"))}
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with _garbage_left():
        # Flask and SQLAlchemy take most of a second to import, which only this command should cost.
        from infosvc.http.follower import open_in_turn
        from infosvc.state.database import parse_url

        url = parse_url(database or f"sqlite:///{home / 'service' / 'infosvc.db'}", _password(database_password_file))
        path = token_path(home, token_file)
        given |= {"audit_key": str(path.with_name(FILE).absolute())}
        given |= _by_database(url.drivername.startswith("sqlite"), path.with_name("files"), given["shared_with"])
        settings = Settings(url.render_as_string(hide_password=False), token_from(path), **given)
        server = open_in_turn(settings, host, port, click.echo, others=others())
    _warn(host, settings)
    beside(server.url, path)
    _run(server, f"listening on {server.url}, database {url.render_as_string()}, token file {path}")


@contextmanager
def _garbage_left() -> Iterator[None]:
    """Look for no garbage: nearly all that a start makes stays, and the server looks once before it serves."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _warn(host: str, settings: Settings) -> None:
    """Say what travels unencrypted."""
    if not is_loopback(host) and settings.tls_cert is None:
        click.echo(
            f"Warning: {host} can be reached from other machines, and tokens and values travel unencrypted: "
            "keep it inside a network you trust, or give it --tls-cert and --tls-key.",
            err=True,
        )
    if settings.tls_cert is not None and settings.agent_ca is None:
        click.echo(
            "Warning: callers speak https with the service, but the service speaks plain http with the agents: "
            "give it --agent-ca, and the agents certificates (`nodewise node add --tls-dir`).",
            err=True,
        )


def _run(server: Server, greeting: str) -> NoReturn:
    """Say that it listens, serve until a signal says to end, then end the process."""
    server.stop_at(signal.SIGTERM, signal.SIGINT)
    click.echo(greeting)
    server.run()
    if server.is_superseded:
        click.echo("Error: another service has taken the database over: start this one again to follow it.", err=True)
    # All is stored and closed. The threads of the HTTP server know no end, and must not meet an interpreter that ends.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1 if server.is_superseded else 0)


def _reading(host: str, wanted: bool | None) -> bool:
    """Whether anyone may read; InvalidInput when that would be anyone on the network."""
    if wanted and not is_loopback(host):
        raise InvalidInput(
            f"{host} can be reached from other machines, so reading cannot be open there",
            "open_reading",
            remedy=(
                "leave --open-reading out, and give readers a token with `nodewise token create NAME --role reader`"
            ),
        )
    return is_loopback(host) if wanted is None else wanted


def _check_names(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if not NODE_NAME.fullmatch(name) or ":" in name:
            raise click.BadParameter(f"{name!r} is not a host name; give it without scheme and port.")
    return names


def _check_url(url: str) -> str:
    """Where the other service is, without a slash at the end."""
    url = url.rstrip("/")
    if url:
        try:
            place_of(url)
        except Unreachable as error:
            raise click.BadParameter(str(error)) from error
        if not _ADDRESS.fullmatch(url):
            raise click.BadParameter(
                f"{url!r} is more than where one service listens: give http://HOST:PORT or https://HOST:PORT."
            )
    return url


def _by_database(is_file: bool, archives: Path, other: str) -> dict[str, Any]:
    """What differs by where the database is; InvalidInput when it is a file and there is another service.

    Beside a file stand the archives, too. A file does not tell two services apart.
    """
    if is_file and other:
        raise InvalidInput(
            "two services cannot share an SQLite file (--shared-with)",
            "shared_with",
            remedy="give both the same MariaDB with --database mysql+pymysql://USER@HOST:PORT/DATABASE",
        )
    if is_file:
        return {}
    return {"task_files": str(archives.absolute())} | ({"flush": FLUSH_SECONDS} if other else {})


def _check_addresses(addresses: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(str(ipaddress.ip_address(address)) for address in addresses)
    except ValueError as error:
        raise click.BadParameter(f"{error}; give the address from which the proxy calls.") from error


def _policy(file: Path | None) -> str | None:
    """The name of the file that is explained; InvalidInput when it cannot be read.

    What it says may still be wrong: whoever edits it must not keep the service from starting again.
    """
    if file is None:
        return None
    try:
        file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"the policy file {file} cannot be read ({error})",
            "policy_file",
            remedy="mend it, or leave --policy-file out",
        ) from error
    return str(file.absolute())


def _secret(file: Path | None) -> str:
    """What messages are signed with, empty for nothing; InvalidInput when the file cannot be used."""
    if file is None:
        return ""
    try:
        others, secret = stat.S_IMODE(file.stat().st_mode) & 0o077, file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read ({error})", "notify_secret_file", remedy="name another") from error
    if others or len(secret) < SHORTEST_TOKEN:
        wrong = "can be read by others" if others else f"has fewer than {SHORTEST_TOKEN} characters"
        raise InvalidInput(
            f"{file} {wrong}", "notify_secret_file", remedy=f"openssl rand -hex 32 > {file}; chmod 600 {file}"
        )
    return secret


def _tls(cert: Path | None, key: Path | None, agent_ca: Path | None) -> dict[str, str]:
    """The names of the files that TLS needs; InvalidInput when one is missing or cannot be used."""
    found: dict[str, str] = {}
    if (cert is None) != (key is None):
        raise InvalidInput("--tls-cert and --tls-key belong together", "tls_cert", remedy="give both, or none")
    if cert is not None and key is not None:
        _check_pair(cert, key)
        found |= {"tls_cert": str(cert.absolute()), "tls_key": str(key.absolute())}
    if agent_ca is not None:
        _check_authority(agent_ca)
        found["agent_ca"] = str(agent_ca.absolute())
    return found


def _check_pair(cert: Path, key: Path) -> None:
    try:
        others = stat.S_IMODE(key.stat().st_mode) & 0o077
        # Without a password of ours OpenSSL would ask for one on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password=lambda: b"none")
    except OSError as error:  # which SSLError is one of
        raise InvalidInput(
            f"{cert} and {key} cannot be used for TLS ({_reason(error)})",
            "tls_cert",
            remedy="give the certificate and its own unencrypted private key, both as PEM",
        ) from error
    if others:
        raise InvalidInput(f"the private key {key} can be read by others", "tls_key", remedy=f"chmod 600 {key}")


def _check_authority(path: Path) -> None:
    try:
        ssl.create_default_context(cafile=path)
    except OSError as error:
        raise InvalidInput(
            f"{path} is not an authority that can be used ({_reason(error)})",
            "agent_ca",
            remedy="give its certificate as PEM",
        ) from error


def _reason(error: OSError) -> str:
    """What is wrong in words; OpenSSL leaves out its own when a file is not PEM at all."""
    if isinstance(error, ssl.SSLError):
        return error.reason.replace("_", " ").lower() if error.reason else "it is not PEM"
    return str(error)


def _password(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get("NODEWISE_DATABASE_PASSWORD")
    try:
        return file.read_text().rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the database password file {file} cannot be read ({error})") from error
