"""What an agent is told when it is launched: settings.json, readable by its user alone."""

from __future__ import annotations

import json
import stat
from dataclasses import dataclass, fields
from pathlib import Path


class SettingsError(Exception):
    """The settings cannot be used; the text names the file and the remedy."""


@dataclass(frozen=True)
class Settings:
    """One agent: who it is, where it listens, whom it reports to, where its files are. All paths are absolute.

    node_name    the node's HDFS and YARN host name
    host, port   address to listen on
    service_url  the information service
    token_file   secret shared with the service, mode 0600
    directory    what was pushed: manifest.json and the files it names
    state_dir    one folder a slot, for samples
    allow        directories from which absolute commands may be started
    proc_root    what collectors read instead of /proc
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

    def token(self) -> str:
        """The shared secret; SettingsError when its file is missing, empty or readable by others."""
        token = _private_text(Path(self.token_file)).strip()
        if not token:
            raise SettingsError(f"{self.token_file} is empty: it holds the token of the service")
        return token


def load(file: Path) -> Settings:
    """Read settings.json; SettingsError names what is missing, unknown or unsafe."""
    try:
        values = json.loads(_private_text(file))
    except ValueError as error:
        raise SettingsError(f"{file} is not JSON ({error}): enrol the node again") from error
    known = {field.name for field in fields(Settings)}
    if not isinstance(values, dict) or set(values) - known:
        raise SettingsError(f"{file} must be one object with keys among {', '.join(sorted(known))}")
    port = values.get("port")
    if "port" in values and not (type(port) is int and 0 < port < 65536):
        raise SettingsError(f"port in {file} is {port!r}, not a number from 1 to 65535: enrol the node again")
    try:
        return Settings(**{**values, "allow": tuple(values.get("allow", ()))})
    except TypeError as error:
        raise SettingsError(f"{file} is not complete ({error}): enrol the node again") from error


def _private_text(file: Path) -> str:
    try:
        mode = file.stat().st_mode
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} cannot be read ({error}): enrol the node again") from error
    if stat.S_IMODE(mode) & 0o077:
        raise SettingsError(f"{file} can be read by others: chmod 600 {file}")
    return text
