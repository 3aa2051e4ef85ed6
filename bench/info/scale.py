"""How much is simulated, and for how long each thing is measured."""

from __future__ import annotations

from dataclasses import dataclass

PARTS = ("read", "server", "visible", "ingest", "restart", "scale", "agent")


@dataclass(frozen=True)
class Scale:
    """One size of the bench; times are seconds.

    nodes, names  so many nodes send so many values each, once every `interval`
    heartbeats    each node also says between two reports that it lives, as a real agent does
    sizes         numbers of nodes that are compared: what of the service's cost grows with them
    rounds        how often each side is measured, in turns; the median is reported
    window        over which CPU time is taken while nothing but the load is there
    reading       for each way of reading
    probing       for the time until a report is visible, and the age of what is read
    ingest        for each way of acknowledging
    agent         for each round with a real agent
    flood         connections over which nodes send as fast as they can; else each node has one of its own
    pages         targets of Prometheus, among which the nodes are spread
    late          so much of what nodes send may be unanswered when they end; more, and the service fell behind
    """

    nodes: int = 1000
    names: int = 50
    interval: float = 5.0
    sizes: tuple[int, int, int] = (1000, 2000, 5000)
    heartbeats: bool = True
    rounds: int = 3
    window: float = 10.0
    reading: float = 4.0
    probing: float = 10.0
    ingest: float = 6.0
    agent: float = 60.0  # some slots run once a minute
    flood: int = 64
    pages: int = 20
    late: float = 2.0

    @property
    def data_names(self) -> list[str]:
        """The names of the simulated values."""
        return [f"bench_{number:02}" for number in range(self.names)]

    @property
    def node_names(self) -> list[str]:
        """The names of the simulated nodes."""
        return [f"node{number:04}" for number in range(self.nodes)]


FULL = Scale()
QUICK = Scale(
    nodes=50,
    names=10,
    interval=1.0,
    sizes=(20, 40, 100),
    rounds=1,
    window=1.0,
    reading=0.5,
    probing=1.5,
    ingest=0.7,
    agent=2.0,
    flood=16,
    pages=5,
    late=60.0,  # how busy the machine is besides is no matter here
)
