"""A local cluster with two NameNodes, two ResourceManagers, and two services on one MariaDB, as a place for faults."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.faults.local import NODES, SPEEDS, Local, attached, home_of
from bench.info.errors import BenchError
from bench.masters import KINDS
from bench.pair import Pair
from bench.stage import stage
from hadoop.local import daemons


@dataclass
class HighlyAvailable(Local):
    """A stage whose service is a pair; the small volumes are its nodes' and its database's."""

    name: str = "ha"

    @property
    def pair(self) -> Pair:
        """The two services."""
        if self.stage.pair is None:
            raise BenchError("this stage has one service alone")
        return self.stage.pair

    def back_up(self) -> None:
        """No fault here brings an older database back."""

    def is_short(self) -> bool:
        """Whether a DataNode or a master was killed and not started again."""
        running, cluster = daemons.find_running(self.stage.cluster), self.stage.cluster
        return super().is_short() or any(one.kind in KINDS and one not in running for one in daemons.of(cluster))


@contextmanager
def ha(home: Path | None, pictures: int, nodes: int = NODES) -> Iterator[HighlyAvailable]:
    """Such a cluster, with small volumes if root runs this; a given home is used again."""
    with ExitStack() as stack:
        where = stack.enter_context(home_of(home))
        volumes = stack.enter_context(attached(where, nodes, {"database": where / "database"}))
        made = stack.enter_context(stage(where, pictures, nodes=nodes, wanted={"ha": True}, paired=True))
        made.judge(SPEEDS[-nodes:])
        yield HighlyAvailable(made, volumes)
