"""Checks the information service: whether it answers, is ready, and knows our token."""

from __future__ import annotations

import json
import socket
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from hadoop.local import ports
from infosvc.access.roles import is_loopback
from infosvc.wire.client import InfoClient
from infosvc.wire.connection import PORTS, Answer, Call, Connections, error_from
from infosvc.wire.errors import Unreachable
from infosvc.wire.records import Node, Role
from infosvc.wire.service_options import read_token, service_timeout, token_path
from nodewise.doctor.clock import offset
from nodewise.doctor.finding import PATIENCE_SECONDS, Finding, Problem, fail, ok, problem, skip, warn
from nodewise.doctor.request import Request

_UNAUTHORIZED = 401
_READY = 200


@dataclass(frozen=True)
class Service:
    """The outcome of one call; `status` is 0 without an answer, `fault` says why it is not ready or refuses us.

    `heard` says whether there is a service at all, even one that we do not trust. `clock` is how many seconds its
    clock is ahead of ours, `token` whether we sent one, `role` the role in its text. `nodes` is None when the service
    could not be asked for them.
    """

    url: str
    status: int
    fault: Problem | None = None
    heard: bool = True
    clock: float | None = None
    token: bool = False
    role: str = ""
    nodes: tuple[Node, ...] | None = None


@dataclass(frozen=True)
class TokenFile:
    """A token file; `mode` is None when it does not exist, `own` says that it belongs to the service of this home."""

    path: Path
    mode: int | None
    own: bool


def read_service(request: Request) -> Service:
    """Ask the service if it is ready, then for its nodes; InfoError when the token or CA file cannot be used."""
    token = read_token(request.home, request.token_file)
    patience = service_timeout(PATIENCE_SECONDS)
    with InfoClient(request.url, token, patience, request.ca_file, retries=0) as client:
        connections = Connections(request.url, patience, request.ca_file)
        shown = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            answer = connections.ask(Call("GET", f"{connections.base}/readyz", headers=shown), retries=0)
            status, fault = _read_readiness(answer, request.url)
        except Unreachable as error:
            return Service(request.url, 0, problem(error), heard=error.field == "ca_file")
        finally:
            connections.close()
        clock = offset(answer.headers.get("Date"))
        nodes = tuple(client.nodes()) if status == _READY else None
    return Service(request.url, status, fault, True, clock, token is not None, role_of(token or ""), nodes)


def role_of(token: str) -> str:
    """The role that the text of a token names, as in `nw_reader_...`; empty for a token of another form."""
    head, _, rest = token.partition("_")
    role = rest.partition("_")[0]
    return role if head == "nw" and role in list(Role) else ""


def service(found: Service | Problem, absent: Finding | None) -> Finding:
    """Whether the service answers and can store; `absent` is the finding when nobody started or named one."""
    name = "service"
    if isinstance(found, Problem):
        return found.as_finding(name)
    if not found.heard and found.fault:
        return absent or found.fault.as_finding(name)
    if found.status == _UNAUTHORIZED:
        return ok(name, f"{found.url} answers; whether it is ready it says to known tokens only")
    if found.fault:
        return found.fault.as_finding(name)
    return ok(name, f"{found.url} answers and is ready")


def explain_absence(given: bool, made: bool) -> Finding | None:
    """Why a service that nobody named does not answer: never started, or stopped. None when it failed."""
    if given:
        return None
    if made:
        return warn("service", "the service of this home is stopped", "start it with `nodewise serve`")
    return skip("service", "no service was started yet", "start one with `nodewise serve`")


def token(found: Service | Problem) -> Finding:
    """Whether the service knows our token, and what that token allows."""
    name, remedy = "token", "name a file with one by --token-file, which an admin makes by `nodewise token create`"
    if isinstance(found, Problem) or not found.status:
        return skip(name, "not shown, as no service answered")
    if found.status == _UNAUTHORIZED and found.fault:
        refused = found.fault.what if found.token else "the service answers known tokens only, and none is here"
        return fail(name, refused, remedy)
    if not found.token:
        return warn(name, "there is none: without it one can only read", remedy)
    if found.status != _READY:
        return skip(name, "not judged, as the service is not ready")
    return ok(name, f"accepted, role {found.role}" if found.role else "accepted")


def read_token_file(home: Path, named: Path | None) -> TokenFile:
    """Look at the mode of the token file; PermissionError when this user may not see it."""
    path = token_path(home, named)
    try:
        return TokenFile(path, stat.S_IMODE(path.stat().st_mode), own=named is None)
    except FileNotFoundError:
        return TokenFile(path, None, own=named is None)


def token_file(found: TokenFile | Problem) -> Finding:
    """Whether others are kept from reading the token: `serve` wants 0600, others may let a group read."""
    name = "token file"
    if isinstance(found, Problem):
        return found.as_finding(name)
    if found.mode is None and found.own:
        return skip(name, f"there is no {found.path}", "`nodewise serve` makes it")
    if found.mode is None:
        return fail(name, f"there is no {found.path}", "name one that is there with --token-file (NODEWISE_TOKEN_FILE)")
    wanted = 0o600 if found.own else 0o640
    what = f"{found.path} has mode {found.mode:04o}"
    if found.mode & ~wanted & 0o077:
        remedy = f"`chmod {wanted:o} {found.path}`, and make another token if somebody may have read it"
        return fail(name, f"{what}, so others have access to the token", remedy)
    return ok(name, what)


def read_port(url: str) -> bool | None:
    """Whether the service's port is free; None when the port is not on this machine."""
    host, port = address(url)
    own = {found.address for all_of_one in psutil.net_if_addrs().values() for found in all_of_one}
    try:
        ip = str(socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
    except (OSError, UnicodeError):
        return None
    return ports.find_taken([(ip, port)]) is None if ip in own or is_loopback(ip) else None


def service_port(url: str, free: bool | Problem | None, found: Service | Problem) -> Finding:
    """Whether the service has its port, or would get it; skipped when the port is not on this machine."""
    name, (host, port) = "service port", address(url)
    if isinstance(free, Problem):
        return free.as_finding(name)
    if free is None:
        return skip(name, f"{host or url} is not this machine")
    if isinstance(found, Problem):
        return skip(name, "not judged, as the service could not be asked")
    if found.heard:
        return ok(name, f"port {port} of {host} is the information service's")
    if free:
        return ok(name, f"port {port} of {host} is free for `nodewise serve`")
    remedy = f"see who it is with `ss -ltnp 'sport = :{port}'` and end it, or `nodewise serve --port` another one"
    return fail(name, f"port {port} of {host} is in use, but no information service answers there", remedy)


def address(url: str) -> tuple[str, int]:
    """Host and port of a URL, the first where there are several; "" and 0 when it has none."""
    try:
        parts = urlsplit(url.partition(",")[0])
        return parts.hostname or "", parts.port or PORTS.get(parts.scheme, 0)
    except ValueError:
        return "", 0


def _read_readiness(answer: Answer, url: str) -> tuple[int, Problem | None]:
    """The status, and what is wrong; Unreachable when another program answered."""
    said = None
    with suppress(ValueError):
        said = json.loads(answer.body)
    if isinstance(said, dict) and said.get("status") == "ready":
        return answer.status, None
    if isinstance(said, dict) and "error" in said:
        return answer.status, problem(error_from(answer.status, answer.body))
    raise Unreachable(f"{url} answered, but is not an information service", "url", remedy="name another one with --url")
