"""Where the cluster is: found as the job commands find it, anew for each call."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hadoop.errors import HadoopError
from hadoop.local.state import current_user
from hadoop.rest import site_files
from hadoop.rest.addresses import namenode_addresses, resourcemanager_addresses
from hadoop.rest.masters import Addresses
from infosvc.wire.errors import NotReady


@dataclass(frozen=True)
class Place:
    """The addresses (scheme://host:port) of a cluster's masters, and the user as whom they are asked.

    With Kerberos that is whoever has the service's ticket, whatever `user` says. Where YARN `collects_logs`, nodes have
    none of what has ended.
    """

    conf_dir: Path
    namenodes: Addresses
    managers: Addresses
    user: str
    has_kerberos: bool = False
    collects_logs: bool = False


@dataclass(frozen=True)
class Site:
    """What tells where the site files are: a folder that was named, else that of `nodewise cluster up` under home."""

    home: Path
    hadoop_conf: Path | None = None
    user: str | None = None

    def place(self) -> Place:
        """The cluster as its site files say; NotReady tells what to set when there are none."""
        conf_dir = (self.hadoop_conf or self.home / "cluster" / "conf").absolute()
        if not (conf_dir / "core-site.xml").is_file():
            raise NotReady(
                f"no Hadoop cluster is known here, for {conf_dir} holds no core-site.xml",
                remedy=(
                    "set HADOOP_CONF_DIR to the site files' folder before `nodewise serve`, or start a "
                    "cluster with `nodewise cluster up`"
                ),
            )
        try:
            user = self.user or current_user()
            namenodes, managers = namenode_addresses(conf_dir), resourcemanager_addresses(conf_dir)
            has_kerberos, collects_logs = site_files.has_kerberos(conf_dir), site_files.collects_logs(conf_dir)
            return Place(conf_dir, namenodes, managers, user, has_kerberos, collects_logs)
        except HadoopError as error:
            raise NotReady(str(error)) from error
