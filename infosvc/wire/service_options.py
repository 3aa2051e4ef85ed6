"""The options by which a command finds the information service and its token, the same in every room.

What travels to nodes has no library for command lines, so a room with commands hands in what makes an option of each.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

from infosvc.wire.client import DEFAULT_TIMEOUT, DEFAULT_URL, InfoClient
from infosvc.wire.errors import InvalidInput

MakeOption = Callable[..., Callable[[Any], Any]]


class ServiceOption(NamedTuple):
    """One option; its value is the path of a file if it `is_file`, else text."""

    flag: str
    variable: str
    help: str
    is_file: bool = True
    default: str | None = None

    def decorator(self, option: MakeOption, file_type: Any) -> Callable[[Any], Any]:
        """Make the option; `option` is click.option, and `file_type` is click's type of a file's path."""
        return option(
            self.flag,
            type=file_type if self.is_file else None,
            envvar=self.variable,
            default=self.default,
            show_default=self.default is not None,
            help=self.help,
        )


URL = ServiceOption(
    "--url",
    "NODEWISE_URL",
    "The information service; of two that share a database, both, with a comma between.  [env: NODEWISE_URL]",
    False,
    DEFAULT_URL,
)
TOKEN_FILE = ServiceOption(
    "--token-file",
    "NODEWISE_TOKEN_FILE",
    "File with the service's token.  [env: NODEWISE_TOKEN_FILE; default: HOME/service/token]",
)
CA_FILE = ServiceOption(
    "--ca-file",
    "NODEWISE_CA_FILE",
    "Authority of an https service's certificate, in PEM form.  "
    "[env: NODEWISE_CA_FILE; default: those of this machine]",
)
SERVICE_OPTIONS = (URL, TOKEN_FILE, CA_FILE)
TIMEOUT_VARIABLE = "NODEWISE_SERVICE_TIMEOUT"
"""How many seconds a command waits for each answer of the service."""
LONGEST_TIMEOUT = 86_400.0


@dataclass(frozen=True)
class ServiceAddress:
    """What these options said; the fields are their names."""

    url: str = DEFAULT_URL
    token_file: Path | None = None
    ca_file: Path | None = None

    @property
    def authority(self) -> Path | None:
        """The file that https trusts; None when none was named, or when it was named ''."""
        return None if self.ca_file == Path() else self.ca_file

    def client(self, home: Path) -> InfoClient:
        """Make a client of the service; without a token, its own or that under `home`, it can only read."""
        token = read_token(home, self.token_file)
        return InfoClient(self.url, token, service_timeout(DEFAULT_TIMEOUT), self.authority)


def add_service_options(command: Callable[..., Any], option: MakeOption, file_type: Any) -> Callable[..., Any]:
    """Give a command all of them; their values reach it together as the ServiceAddress `service`.

    `option` is click.option, and `file_type` is click's type of a file's path.
    """

    @wraps(command)
    def call(*args: Any, url: str, token_file: Path | None, ca_file: Path | None, **named: Any) -> Any:
        return command(*args, service=ServiceAddress(url, token_file, ca_file), **named)

    for one in reversed(SERVICE_OPTIONS):
        call = one.decorator(option, file_type)(call)
    return call


def service_timeout(usual: float) -> float:
    """The seconds to wait for each answer of the service: `usual` unless the environment says how many.

    InvalidInput when it says something else.
    """
    said = os.environ.get(TIMEOUT_VARIABLE)
    if not said:
        return usual
    with suppress(ValueError):
        if 0 < float(said) <= LONGEST_TIMEOUT:
            return float(said)
    raise InvalidInput(
        f"{TIMEOUT_VARIABLE} is {said!r}, and must be a number of seconds above 0 and at most {LONGEST_TIMEOUT:.0f}",
        TIMEOUT_VARIABLE,
        remedy="set it to such a number, or unset it",
    )


def token_path(home: Path, token_file: Path | None) -> Path:
    """The token file that was named, or the one under home."""
    return token_file or home / "service" / "token"


def read_token(home: Path, token_file: Path | None) -> str | None:
    """The token, None when nothing lies at the default place; InvalidInput when a named file cannot be read."""
    path = token_path(home, token_file)
    if not token_file and not path.exists():
        return None
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"the token file {path} cannot be read ({error})",
            "token_file",
            remedy="`nodewise serve` makes it; name it with --token-file",
        ) from error
