"""One SSH connection with a verified host key, every failure of which is one sentence."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import paramiko
from paramiko.channel import ChannelFile

from infosvc.wire.errors import Conflict, InfoError, InvalidInput, NotReady, Unauthorized, Unreachable

CONNECT_SECONDS = 15.0
ANSWER_SECONDS = 60.0
_ABOUT_KEYS = ("No authentication methods available", "private key", "Invalid key", "key header", "base64 decoding")
"""Words of paramiko's errors before it shows a key to the machine."""
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
        options = paramiko.SSHConfig.from_path(str(config_file)).lookup(host)
        return Route(
            address=options["hostname"],
            port=int(options.get("port", 22)),
            user=options.get("user"),
            identities=tuple(options.get("identityfile", ())),
            known_hosts=tuple(shlex.split(options.get("userknownhostsfile", ""))),
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

    def talk(self, argv: Sequence[str]) -> Talk:
        """Start one command there that answers each line with a line, until the connection closes."""
        try:
            return Talk(
                self._way.address, argv[0], *self._client.exec_command(shlex.join(argv), timeout=ANSWER_SECONDS)
            )
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise _broken_off(self._way.address, argv[0], error) from error

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
                f"{address} shows another host key than the known one",
                "host",
                remedy=(
                    "if the machine was set up anew, verify its key and replace its entry in known_hosts, "
                    "else somebody may sit between"
                ),
            )
        if isinstance(error, paramiko.AuthenticationException):
            return Unauthorized(
                f"{address} refuses the login ({error})", "host", remedy="check the user and the identity file"
            )
        if isinstance(error, paramiko.SSHException) and "not found in known_hosts" in str(error):
            return Conflict(
                f"the host key of {address} is not known",
                "host",
                remedy=(f"read it with `ssh-keyscan -p {port} {address}`, verify it, and add it to a known_hosts file"),
            )
        if isinstance(error, paramiko.SSHException) and any(word in str(error) for word in _ABOUT_KEYS):
            return Unauthorized(
                f"there is no key to log in to {address} with ({error})",
                "host",
                remedy="name a private key with --identity, or make one with ssh-keygen and allow it there",
            )
        if isinstance(error, FileNotFoundError | PermissionError):
            return InvalidInput(f"the identity file cannot be read: {error}", "identity")
        why = getattr(error, "strerror", None) or error
        return Unreachable(
            f"{address} cannot be reached over SSH, port {port} ({why})", "host", remedy="does sshd run there?"
        )


class Talk:
    """A command on a machine, asked line by line."""

    def __init__(self, address: str, name: str, stdin: ChannelFile, stdout: ChannelFile, stderr: ChannelFile) -> None:
        self._address = address
        self._name = name
        self._stdin, self._stdout, self._stderr = stdin, stdout, stderr

    def ask(self, line: str) -> str:
        """The line it answers; NotReady with its last complaint when it has ended instead."""
        try:
            # A command that has ended says why on stderr, which is worth more than the broken pipe.
            with suppress(OSError):
                self._stdin.write(line + "\n")
                self._stdin.flush()
            answer = str(self._stdout.readline())
            if answer:
                return answer
            complaint = self._stderr.read().decode(errors="replace").strip()
            status = self._stdout.channel.recv_exit_status()
        except (OSError, EOFError, UnicodeDecodeError, paramiko.SSHException) as error:
            raise _broken_off(self._address, self._name, error) from error
        if status == _NOT_FOUND_STATUS:
            raise NotReady(
                f"{self._address} has no {self._name}",
                remedy=f"install it there, for example apt-get install {self._name}",
            )
        reason = complaint.rpartition("\n")[2] or f"{self._name} ended with status {status}"
        raise NotReady(f"{self._address}: {reason}")


def _broken_off(address: str, name: str, error: Exception) -> Unreachable:
    return Unreachable(f"{address} broke off during {name} ({error!r})", remedy="try again")
