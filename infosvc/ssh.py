"""One SSH connection with a verified host key, every failure of which is one sentence."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import paramiko

from infosvc.errors import Conflict, InfoError, InvalidInput, NotReady, Unauthorized, Unreachable

CONNECT_SECONDS = 15.0
COMMAND_SECONDS = 60.0
_NOT_FOUND_STATUS = 127  # how a shell says that there is no such command


@dataclass(frozen=True)
class Route:
    """How to reach one host: `address` is where its name leads, the files are those of OpenSSH."""

    address: str
    port: int = 22
    user: str | None = None
    identities: tuple[str, ...] = ()
    known_hosts: tuple[str, ...] = ()


def route(host: str, config_file: Path | None = None) -> Route:
    """What an OpenSSH client configuration says about a host; InvalidInput when it cannot be read."""
    if config_file is None:
        return Route(host)
    try:
        found = paramiko.SSHConfig.from_path(str(config_file)).lookup(host)
        return Route(
            address=found["hostname"],
            port=int(found.get("port", 22)),
            user=found.get("user"),
            identities=tuple(found.get("identityfile", ())),
            known_hosts=tuple(shlex.split(found.get("userknownhostsfile", ""))),
        )
    except (OSError, ValueError, paramiko.SSHException) as error:
        raise InvalidInput(f"the SSH configuration {config_file} cannot be used: {error}", "ssh_config") from error


class Connection:
    """A context manager: connected on entry, closed on exit; every call raises an InfoError."""

    def __init__(self, way: Route) -> None:
        self._way = way
        self._client = paramiko.SSHClient()

    def __enter__(self) -> Connection:
        try:
            self._connect()
        except BaseException:
            self._client.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def run(self, argv: Sequence[str]) -> str:
        """Run one command there and return its output; NotReady with its last complaint when it fails."""
        try:
            _, stdout, stderr = self._client.exec_command(shlex.join(argv), timeout=COMMAND_SECONDS)
            output, complaint = stdout.read().decode(), stderr.read().decode(errors="replace").strip()
            status = stdout.channel.recv_exit_status()
        except (OSError, EOFError, UnicodeDecodeError, paramiko.SSHException) as error:
            raise Unreachable(f"{self._way.address} broke off during {argv[0]} ({error!r}): try again") from error
        if status == _NOT_FOUND_STATUS:
            raise NotReady(
                f"{self._way.address} has no {argv[0]}: install it there, for example apt-get install {argv[0]}"
            )
        if status != 0:
            said = complaint.rpartition("\n")[2] or f"{argv[0]} ended with status {status}"
            raise NotReady(f"{self._way.address}: {said}")
        return output

    def sftp(self) -> paramiko.SFTPClient:
        """A file transfer session; a context manager of its own."""
        try:
            return self._client.open_sftp()
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise NotReady(f"{self._way.address} offers no SFTP ({error}): enable its sftp subsystem") from error

    def _connect(self) -> None:
        way = self._way
        # An unknown machine could be anybody's, and it is about to be given the token.
        self._client.set_missing_host_key_policy(paramiko.RejectPolicy())
        try:
            self._client.load_system_host_keys()
            for known_hosts in way.known_hosts:
                self._client.load_host_keys(str(Path(known_hosts).expanduser()))
        except (OSError, paramiko.SSHException) as error:
            raise InvalidInput(f"the known hosts cannot be read: {error}", "known_hosts") from error
        try:
            self._client.connect(
                way.address,
                port=way.port,
                username=way.user,
                key_filename=list(way.identities) or None,  # type: ignore[arg-type]  # the stubs know one, paramiko takes many
                allow_agent=not way.identities,
                look_for_keys=not way.identities,
                timeout=CONNECT_SECONDS,
                banner_timeout=CONNECT_SECONDS,
                auth_timeout=CONNECT_SECONDS,
            )
        except (OSError, EOFError, UnicodeError, paramiko.SSHException) as error:
            raise self._explain(error) from error

    def _explain(self, error: Exception) -> InfoError:
        address, port = self._way.address, self._way.port
        if isinstance(error, paramiko.BadHostKeyException):
            return Conflict(
                f"{address} shows another host key than the known one: if the machine was set up anew, verify its key "
                f"and replace its entry in known_hosts, else somebody may sit between",
                "host",
            )
        if isinstance(error, paramiko.AuthenticationException):
            return Unauthorized(f"{address} refuses the login ({error}): check the user and the identity file", "host")
        if isinstance(error, paramiko.SSHException) and "not found in known_hosts" in str(error):
            return Conflict(
                f"the host key of {address} is not known: read it with `ssh-keyscan -p {port} {address}`, verify it, "
                "and add it to a known_hosts file",
                "host",
            )
        if isinstance(error, FileNotFoundError | PermissionError):
            return InvalidInput(f"the identity file cannot be read: {error}", "identity")
        why = getattr(error, "strerror", None) or error
        return Unreachable(f"{address} cannot be reached over SSH, port {port} ({why}): does sshd run there?", "host")
