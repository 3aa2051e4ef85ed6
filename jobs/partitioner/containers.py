"""One container on exactly each planned node, from asking for it to its end."""

from __future__ import annotations

from collections.abc import Mapping

from hadoop.master import Ended, Heartbeat, MasterSession
from hadoop.yarn import Launch
from jobs.errors import JobError
from jobs.logs import log_line
from jobs.partitioner.api import Listener


class Containers:
    """Asks on creation; `step` then does one exchange with YARN and raises JobError when a node cannot finish.

    `launches` says what to run on which node, `wait` how many seconds a node may take to give its container,
    `silence` how many seconds a worker may say nothing, and `listener` hears the workers.
    """

    def __init__(
        self,
        session: MasterSession,
        launches: Mapping[str, Launch],
        wait: float,
        silence: float,
        now: float,
        listener: Listener,
    ) -> None:
        self._session = session
        self._launches = launches
        self._wait = wait
        self._deadline = now + wait
        self._silence = silence
        self._listener = listener
        self._waiting = set(launches)
        self._running: dict[str, str] = {}
        self._started: dict[str, float] = {}
        for number, (node_name, launch) in enumerate(sorted(launches.items()), start=1):
            session.ask(number, node_name, launch)

    def step(self, now: float, progress: float) -> bool:
        """Whether every container has ended well, after one exchange."""
        news = self._session.heartbeat(progress)
        for granted in news.granted:
            self._session.launch(granted, self._launches[granted.node_name])
            print(log_line(granted.container_id, granted.log_address), flush=True)
            self._waiting.discard(granted.node_name)
            self._running[granted.container_id] = granted.node_name
            self._started[granted.node_name] = now
        for ended in news.ended:
            self._end(ended)
        self._check_lost(news)
        self._check_workers(now)
        if self._waiting and now > self._deadline:
            raise JobError(
                f"no container on {_names(self._waiting)} within {self._wait:.0f} s: the node is lost or full; "
                "`nodewise cluster status` shows which; run the job again when it is back"
            )
        return not self._waiting and not self._running

    def _end(self, ended: Ended) -> None:
        node_name = self._running.pop(ended.container_id, None)
        if node_name is None or ended.exit_status == 0:
            return
        said = self._listener.reason(node_name) or ended.diagnostics.split("\n", maxsplit=1)[0] or "it said nothing"
        raise JobError(
            f"the worker on {node_name} ended with status {ended.exit_status}: {said} "
            "(`nodewise job logs` shows its output)"
        )

    def _check_workers(self, now: float) -> None:
        for node_name in self._running.values():
            if reason := self._listener.reason(node_name):
                raise JobError(f"the worker on {node_name} gave up: {reason} (`nodewise job logs` shows its output)")
            silent = now - (self._listener.last_heard(node_name) or self._started[node_name])
            if silent > self._silence:
                raise JobError(
                    f"the worker on {node_name} has said nothing for {silent:.0f} s: is the node overloaded? "
                    "run the job again, with a smaller --batch if a batch takes that long there"
                )

    def _check_lost(self, news: Heartbeat) -> None:
        lost = set(news.lost_nodes)
        if before := lost & self._waiting:
            raise JobError(
                f"node {_names(before)} was lost before its container started: "
                "run the job again, the plan then leaves it out, or bring it back first"
            )
        if during := lost & set(self._running.values()):
            raise JobError(f"node {_names(during)} was lost while it worked: run the job again, without it or repaired")


def _names(nodes: set[str]) -> str:
    return ", ".join(sorted(nodes))
