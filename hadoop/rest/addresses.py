"""Where the web pages of Hadoop's masters are, as the site files say: scheme, host and port of each daemon.

A cluster may have several NameNodes and ResourceManagers, of which one is active, so every daemon has a list of
addresses: hadoop.rest.pages finds out which to ask.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from hadoop.errors import HadoopError
from hadoop.rest.default_ports import DEFAULT_PORTS
from hadoop.rest.site_files import CORE, HDFS, YARN, Settings, missing_key

_EVERY_HOST = ("", "0.0.0.0", "::")  # noqa: S104 a daemon may listen on all addresses, and nobody can connect to that


def namenode_addresses(conf_dir: Path) -> tuple[str, ...]:
    """The addresses (scheme://host:port) of all NameNodes, for WebHDFS too; HadoopError when no host is named."""
    settings = Settings(conf_dir, HDFS)
    scheme = _scheme(settings, "dfs.http.policy")
    key = f"dfs.namenode.{scheme}-address"
    services = _services(settings)
    default = settings.get("fs.defaultFS")
    addresses = []
    for suffix in _namenode_suffixes(settings, services, default):
        rpc = settings.get(f"dfs.namenode.rpc-address{suffix}")
        hosts = [rpc, "" if services else default]
        addresses.append(_address(settings, scheme, key, suffix, hosts))
    return _complete(addresses, settings, key)


def resourcemanager_addresses(conf_dir: Path) -> tuple[str, ...]:
    """The addresses (scheme://host:port) of all ResourceManagers; HadoopError when no host is named."""
    settings = Settings(conf_dir, YARN)
    scheme = _scheme(settings, "yarn.http.policy")
    key = f"yarn.resourcemanager.webapp.{'https.' if scheme == 'https' else ''}address"
    several = settings.get("yarn.resourcemanager.ha.enabled").lower() == "true"
    names = settings.names("yarn.resourcemanager.ha.rm-ids") if several else []
    addresses = []
    for suffix in [f".{name}" for name in names] or [""]:
        hosts = [settings.get(f"yarn.resourcemanager.{word}{suffix}") for word in ("hostname", "address")]
        addresses.append(_address(settings, scheme, key, suffix, hosts))
    return _complete(addresses, settings, "yarn.resourcemanager.hostname")


def hdfs_names(conf_dir: Path) -> tuple[str, ...]:
    """What the file system in use is called in paths (hdfs://NAME/): its name service, and its NameNodes' hosts."""
    settings = Settings(conf_dir, HDFS)
    default = settings.get("fs.defaultFS")
    suffixes = _namenode_suffixes(settings, _services(settings), default)
    said = [urlsplit(default).netloc, *_rpc_addresses(settings, suffixes)]
    return tuple(dict.fromkeys(name for one in said if (name := _split(settings, "fs.defaultFS", one)[0])))


def _scheme(settings: Settings, policy: str) -> str:
    return "https" if settings.get(policy).upper() == "HTTPS_ONLY" else "http"


def _services(settings: Settings) -> list[str]:
    """The name services of all file systems that are known here, none where each has one NameNode and no name."""
    return settings.names("dfs.internal.nameservices") or settings.names("dfs.nameservices")


def _namenode_suffixes(settings: Settings, services: list[str], default: str) -> list[str]:
    """What is added to a key for each NameNode of the file system in use: nothing when there is only one."""
    if not services:
        return [""]
    suffixes = {service: _suffixes_of(settings, service) for service in services}
    named = urlsplit(default)
    if named.scheme != "hdfs" or not named.netloc:
        return suffixes[services[0]]
    for service, found in suffixes.items():
        if named.netloc == service or named.hostname in _hosts(settings, found):
            return found
    raise HadoopError(
        f"{settings.file.with_name(CORE)} sets fs.defaultFS to {default}, and {settings.file.name} knows no such HDFS",
        remedy=f"name one of {', '.join(services)}, or add it to dfs.nameservices",
    )


def _suffixes_of(settings: Settings, service: str) -> list[str]:
    several = [f".{service}.{name}" for name in settings.names(f"dfs.ha.namenodes.{service}")]
    return several or [f".{service}" if settings.get(f"dfs.namenode.rpc-address.{service}") else ""]


def _rpc_addresses(settings: Settings, suffixes: list[str]) -> list[str]:
    return [settings.get(f"dfs.namenode.rpc-address{suffix}") for suffix in suffixes]


def _hosts(settings: Settings, suffixes: list[str]) -> set[str]:
    return {_split(settings, "dfs.namenode.rpc-address", one)[0] for one in _rpc_addresses(settings, suffixes)}


def _address(settings: Settings, scheme: str, key: str, suffix: str, hosts: list[str]) -> str:
    """The address under one key, its host taken from the first of `hosts` where it names none; "" when none does."""
    host, port = _split(settings, f"{key}{suffix}", settings.get(f"{key}{suffix}"))
    for other in hosts:
        if host in _EVERY_HOST:
            host = _split(settings, key, other.rpartition("//")[2])[0]
    if host in _EVERY_HOST:
        return ""
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port or DEFAULT_PORTS[key]}"


def _split(settings: Settings, key: str, text: str) -> tuple[str, int | None]:
    try:
        parts = urlsplit(f"//{text}")
        return parts.hostname or "", parts.port
    except ValueError:
        raise HadoopError(
            f"{settings.file} sets {key} to {text!r}", remedy="correct it, it must be HOST:PORT"
        ) from None


def _complete(candidates: list[str], settings: Settings, key: str) -> tuple[str, ...]:
    addresses = tuple(address for address in candidates if address)
    if not addresses:
        raise missing_key(settings.file, key)
    return addresses
