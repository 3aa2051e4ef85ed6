"""What `nodewise doctor` was asked to look at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infosvc.shipping.remote import RemoteOptions


@dataclass(frozen=True)
class Request:
    """The options of the command.

    `url_given` says whether the user named the service. `hadoop_conf` is None for the cluster of `home`. `files` is a
    folder of the user's own files to push. `ssh` is how to log in to the nodes; None not to.
    """

    home: Path
    url: str
    url_given: bool
    token_file: Path | None
    ca_file: Path | None
    hadoop_conf: Path | None
    jars: Path
    worker_python: Path
    files: Path | None
    ssh: RemoteOptions | None

    @property
    def conf_dir(self) -> Path:
        """Where Hadoop's site files are."""
        return self.hadoop_conf or self.home / "cluster" / "conf"
