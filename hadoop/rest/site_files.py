"""Hadoop's site files as read by programs that have no JVM."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from hadoop.errors import HadoopError


def namenode_http(conf_dir: Path) -> str:
    """The NameNode's HTTP address (http://host:port), for WebHDFS."""
    return f"http://{value(conf_dir / 'hdfs-site.xml', 'dfs.namenode.http-address')}"


def resourcemanager_http(conf_dir: Path) -> str:
    """The ResourceManager's HTTP address (http://host:port)."""
    return f"http://{value(conf_dir / 'yarn-site.xml', 'yarn.resourcemanager.hostname')}:8088"


def value(site_file: Path, key: str) -> str:
    """The text of one key; HadoopError when the file or the key is missing, or the file is no XML."""
    if not site_file.is_file():
        raise HadoopError(
            f"{site_file} does not exist: start a cluster with `nodewise cluster up`, "
            "or name the site files' folder with --hadoop-conf"
        )
    try:
        # The site files are the operator's own, not input from outside.
        site = ElementTree.parse(site_file)  # noqa: S314
    except (ElementTree.ParseError, OSError) as error:
        raise HadoopError(f"{site_file} cannot be read ({error}): mend it, it must be Hadoop's XML") from None
    for found in site.iter("property"):
        if found.findtext("name", "").strip() == key:
            return found.findtext("value", "").strip()
    raise HadoopError(f"{site_file} does not set {key}: add it, this command needs it")
