"""Hadoop's site files as read by programs that have no JVM."""

from __future__ import annotations

import os
import re
from pathlib import Path
from xml.etree import ElementTree

from hadoop.errors import HadoopError

CORE, HDFS, YARN = "core-site.xml", "hdfs-site.xml", "yarn-site.xml"
_VARIABLE = re.compile(r"\$\{([^}$\s]+)\}")
_MOST_VARIABLES = 20


class Settings:
    """The settings of core-site.xml and of one more site file, whose values win; `${key}` stands for another value.

    `get` raises HadoopError when variables name each other.
    """

    def __init__(self, conf_dir: Path, name: str) -> None:
        """Read both files; HadoopError when `name` is missing or damaged. core-site.xml may be missing."""
        self.file = conf_dir / name
        core = conf_dir / CORE
        self._values = (read(core) if core.is_file() else {}) | read(self.file)

    def get(self, key: str, default: str = "") -> str:
        """The value of a key with every variable replaced; `default` when the key is not set or its value is empty."""
        value = self._values.get(key) or default
        for _ in range(_MOST_VARIABLES):
            variable = _VARIABLE.search(value)
            if not variable:
                return value
            value = f"{value[: variable.start()]}{self._variable(variable[1])}{value[variable.end() :]}"
        raise HadoopError(
            f"{self.file} sets {key} by variables that name each other", remedy="correct it, or name a value"
        )

    def names(self, key: str) -> list[str]:
        """The names in a list that commas separate."""
        return [name.strip() for name in self.get(key).split(",") if name.strip()]

    def _variable(self, name: str) -> str:
        if name.startswith("env."):
            return os.environ.get(name.removeprefix("env."), "")
        return self._values.get(name, "")


def read(site_file: Path) -> dict[str, str]:
    """Every key of a site file with its text; HadoopError when the file is missing, or is not XML."""
    if not site_file.is_file():
        raise HadoopError(
            f"{site_file} does not exist",
            remedy=("start a cluster with `nodewise cluster up`, or name the site files' folder with --hadoop-conf"),
        )
    try:
        # The site files are the operator's own, not input from outside.
        site = ElementTree.parse(site_file)  # noqa: S314
    except (ElementTree.ParseError, OSError) as error:
        raise HadoopError(f"{site_file} cannot be read ({error})", remedy="mend it, it must be Hadoop's XML") from None
    return {found.findtext("name", "").strip(): found.findtext("value", "").strip() for found in site.iter("property")}


def value(site_file: Path, key: str) -> str:
    """The text of one key; HadoopError when the file or the key is missing, or the file is not XML."""
    values = read(site_file)
    if key not in values:
        raise missing_key(site_file, key)
    return values[key]


def missing_key(site_file: Path, key: str) -> HadoopError:
    """The error of a site file that does not set a key without which a command cannot go on."""
    return HadoopError(f"{site_file} does not set {key}", remedy="add it, this command needs it")


def collects_logs(conf_dir: Path) -> bool:
    """Whether YARN takes logs of what has ended from its nodes into HDFS, as its yarn-site.xml says; HadoopError."""
    return Settings(conf_dir, YARN).get("yarn.log-aggregation-enable").lower() == "true"


def has_kerberos(conf_dir: Path) -> bool:
    """Whether a cluster has Kerberos, as its core-site.xml says; HadoopError when that is missing or damaged."""
    return Settings(conf_dir, CORE).get("hadoop.security.authentication").lower() == "kerberos"
