"""What a training run is told, beyond what every job is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jobs.application.devices.device_options import DeviceOptions
from jobs.application.options import option
from jobs.application.package import WORKER_PYTHON, WORKER_PYTHON_VARIABLE
from jobs.errors import JobError
from locality.training.sync import parse_sync
from locality.types import PlanError

MOST_MEMBERS = 256
_MEMBERS = re.compile(r"(?:([0-9]{1,3}):)?([0-9]{1,3})")


@dataclass(frozen=True, kw_only=True)
class TrainSettings(DeviceOptions):
    """`argv` is the program and its arguments, never a line for a shell; `output` a folder of HDFS without scheme.

    capability   the data name by whose values nodes are the best ones, and get their first shares
    cold_start   gives the first shares where there is no capability, and to nodes that have not run the program yet
    files        of the user's machine; once the job is submitted, their names beside the program
    parts        of `env`: their paths in HDFS, by the folders that they become
    """

    argv: Sequence[str]
    output: str = option("", help="Folder in HDFS for checkpoints and the report.", metavar="PATH")
    members: str = option("2", help="Nodes that train: as many, or the fewest and the most, as 2:4.", metavar="N|N:M")
    capability: str | None = option(
        None, help="Data name that ranks the nodes, and whose values give the first shares.", metavar="NAME"
    )
    cold_start: str | None = option(
        None,
        help="Data name that gives first shares where no node has trained with PROGRAM  [default: that of free CPU].",
        metavar="NAME",
    )
    sync: str | None = option(
        None,
        help="How often members average: every step, which is exact; or, on thin networks, after H steps of their own "
        "(local:H), or as the network asks for (auto)  [default: as the program says, else every].",
        metavar="every|local:H|auto",
    )
    memory_mb: int = option(1024, flag="--memory", help="Memory of each member.", least=256, is_memory=True)
    vcores: int = option(1, help="Cores of each member.", least=1)
    restarts: int = option(3, help="How often members may fail one after the other without a step in between.", least=0)
    worker_python: str = option(
        str(WORKER_PYTHON),
        help="Python of the members on the nodes, which `python` in PROGRAM means  [default: this installation's].",
        envvar=WORKER_PYTHON_VARIABLE,
        show_default=False,
    )
    env: str | None = option(
        None,
        help="Environment that `nodewise env make` has made, in place of --worker-python; see docs/environments.md.",
        metavar="NAME[@VERSION]",
    )
    parts: Mapping[str, str] = field(default_factory=dict)
    files: Sequence[str] = option(
        (), flag="--file", help="File to lay beside the program; may be given several times.", is_file=True
    )

    @property
    def script(self) -> str:
        """The first word that is a file of the user's, else the first one of Python, else the program.

        >>> TrainSettings(argv=["python", "train.py"], files=["data.csv", "mine/train.py"]).script
        'train.py'
        >>> [TrainSettings(argv=line.split()).script for line in ("/opt/train 5", "python -u /opt/net.py 5")]
        ['train', 'net.py']
        """
        names = {Path(file).name for file in self.files}
        scripts = (Path(word).name for word in self.argv if word.endswith(".py"))
        return next((word for word in self.argv if word in names), next(scripts, Path(self.argv[0]).name))

    @property
    def least(self) -> int:
        """The fewest members with which the run goes on; JobError when `members` is something else."""
        return self._bounds()[0]

    @property
    def most(self) -> int:
        """The most members; JobError as above."""
        return self._bounds()[1]

    def check_members(self) -> None:
        """JobError when `members` is not a number of members, or two."""
        self._bounds()

    def check_sync(self) -> None:
        """JobError when `sync` is not what members can average by."""
        if self.sync is not None:
            check_sync(self.sync)

    def _bounds(self) -> tuple[int, int]:
        match = _MEMBERS.fullmatch(self.members)
        most = int(match[2]) if match else 0
        least = int(match[1] or most) if match else 0
        if not 1 <= least <= most <= MOST_MEMBERS:
            raise JobError(
                f"--members {self.members} is not a number of members",
                remedy=f"give one from 1 to {MOST_MEMBERS}, or the fewest and the most, as 2:4",
            )
        return least, most


def check_sync(text: str) -> None:
    """JobError when members cannot average by it."""
    try:
        parse_sync(text)
    except PlanError as error:
        raise JobError(f"--sync: {error.message}", remedy=error.remedy) from None
