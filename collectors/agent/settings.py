"""What an agent is told when it is launched: settings.json, readable by its user alone."""

from __future__ import annotations

import json
import stat
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from collectors.agent.run.limits import Limits

_POSITIVE = (
    "limit_cpu_seconds",
    "limit_address_space_bytes",
    "limit_open_files",
    "limit_processes",
    "spool_bytes",
)


class SettingsError(Exception):
    """The settings cannot be used; the text names the file and the remedy."""


@dataclass(frozen=True)
class Settings:
    """One agent: who it is, where it listens, whom it reports to, where its files are. All paths are absolute.

    node_name    the node's HDFS and YARN host name
    host, port   address to listen on
    service_url  the information service, or several of one database, with commas between
    token_file   the token of this node's agent, mode 0600
    directory    what was pushed: manifest.json and the files it names
    state_dir    one folder a slot, for samples; the slots' logs and the spool
    allow        directories from which absolute commands may be started
    proc_root    what collectors read instead of /proc
    ca_file      whose certificate an https service_url must bear; empty: the machine's own authorities
    tls_cert, tls_key  the agent's own certificate and key: with both it listens with TLS
    spool_bytes  room on disk for runs that the service has not taken yet; then the oldest go
    limit_...    what one process of a run may use: see Limits; limit_cpu_seconds null goes by the slot's timeout
    """

    node_name: str
    host: str
    port: int
    service_url: str
    token_file: str
    directory: str
    state_dir: str
    allow: tuple[str, ...] = ()
    proc_root: str = "/proc"
    ca_file: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    spool_bytes: int = 8 * 1024**2
    limit_cpu_seconds: int | None = None
    limit_address_space_bytes: int = 2 * 1024**3
    limit_open_files: int = 256
    limit_processes: int = 4096

    def token(self) -> str:
        """The agent's token; SettingsError when its file is missing, empty or readable by others."""
        token = _private_text(Path(self.token_file)).strip()
        if not token:
            raise SettingsError(f"{self.token_file} is empty: it holds the token of this node's agent")
        return token

    def limits(self) -> Limits:
        """What one process of a run may use."""
        return Limits(
            self.limit_cpu_seconds, self.limit_address_space_bytes, self.limit_open_files, self.limit_processes
        )


def load(file: Path) -> Settings:
    """Read settings.json; SettingsError names what is missing, unknown or unsafe."""
    try:
        values = json.loads(_private_text(file))
    except ValueError as error:
        raise SettingsError(f"{file} is not JSON ({error}): enrol the node again") from error
    known = {field.name for field in fields(Settings)}
    if not isinstance(values, dict) or set(values) - known:
        raise SettingsError(f"{file} must be one object with keys among {', '.join(sorted(known))}")
    _check(values, file)
    try:
        return Settings(**{**values, "allow": tuple(values.get("allow", ()))})
    except TypeError as error:
        raise SettingsError(f"{file} is not complete ({error}): enrol the node again") from error


def _check(values: dict[str, Any], file: Path) -> None:
    port = values.get("port")
    if "port" in values and not (type(port) is int and 0 < port < 65536):
        raise SettingsError(f"port in {file} is {port!r}, not a number from 1 to 65535: enrol the node again")
    for key in _POSITIVE:
        value = values.get(key)
        if value is not None and not (type(value) is int and value > 0):
            raise SettingsError(f"{key} in {file} is {value!r}, not a whole number above 0: correct it there")
        if value is None and key in values and key != "limit_cpu_seconds":
            raise SettingsError(f"{key} in {file} is null: give a whole number above 0, or leave it out")
    if bool(values.get("tls_cert")) != bool(values.get("tls_key")):
        raise SettingsError(f"{file} has only one of tls_cert and tls_key: give both, or neither")


def _private_text(file: Path) -> str:
    try:
        mode = file.stat().st_mode
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} cannot be read ({error}): enrol the node again") from error
    if stat.S_IMODE(mode) & 0o077:
        raise SettingsError(f"{file} can be read by others: chmod 600 {file}")
    return text
