"""How far a job is, for its page, its client and YARN."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jobs.application.containers import Containers
from jobs.application.status import JobStatus, NodeStatus
from jobs.division.decision import Decision
from jobs.itemwork.dealer import Dealer
from jobs.itemwork.node_totals import NOTHING
from jobs.reports.report import Failure

MOST_NEWS = 5


class Progress:
    """Reads what the dealer and the containers know at the moment it is asked."""

    def __init__(
        self,
        job_id: str,
        attempt: int,
        decision: Decision,
        work: Dealer,
        containers: Containers,
        clock: Callable[[], float],
        failures: Sequence[Failure],
    ) -> None:
        self._job_id = job_id
        self._attempt = attempt
        self._planned = decision.plan.loads()
        self._images = decision.images
        self._work = work
        self._containers = containers
        self._clock = clock
        self._failures = failures
        self._state = "running"

    def storing(self) -> None:
        """From now on the results are put together."""
        self._state = "storing"

    def done(self) -> float:
        """The share of the pictures that have their rows, 0 to 1."""
        return 1 - self._work.left / self._images

    def status(self) -> JobStatus:
        """Everything at once."""
        tallies, running, states = self._work.tallies(), self._work.running(), self._containers.states()
        left, now = self._work.left, self._clock()
        nodes = []
        for node_name, planned in sorted(self._planned.items()):
            tally = tallies.get(node_name, NOTHING)
            state, failures, said = states.get(node_name, ("done", 0, ""))
            nodes.append(
                NodeStatus(
                    node_name=node_name,
                    state=state if left else "done",
                    planned=planned,
                    images=tally.images,
                    errors=tally.errors,
                    local_images=tally.local_images,
                    running=running.get(node_name, 0),
                    images_per_second=tally.images / tally.busy_seconds if tally.busy_seconds else 0.0,
                    failures=failures,
                    said=said,
                )
            )
        speed = sum(node.images_per_second for node in nodes if node.state == "working")
        return JobStatus(
            job_id=self._job_id,
            state=self._state,
            attempt=self._attempt,
            images=self._images,
            done=self._images - left,
            errors=sum(node.errors for node in nodes),
            seconds=now,
            seconds_left=left / speed if speed else None,
            nodes=tuple(nodes),
            news=tuple(_news(failure) for failure in self._failures[-MOST_NEWS:]),
        )


def _news(failure: Failure) -> str:
    said = f": {failure.said}" if failure.said else ""
    return f"{failure.seconds:.0f} s: {failure.node_name} {failure.kind}{said}"
