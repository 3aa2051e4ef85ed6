"""The faults of a place with two of each master and two services: the active one goes, and the other takes over."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from bench.faults.ha import HighlyAvailable
from bench.faults.place import Trial
from bench.info.errors import BenchError
from bench.masters import await_both, find_active
from bench.pair import await_end
from bench.stage import until
from hadoop.local import daemons

PairTrial = Trial[HighlyAvailable]

TAKEN_SECONDS = 120.0
"""Until the other one has taken over from one that stands still; killed ones are replaced in a tenth of that."""
AWAY_SECONDS = (0.0, 5.0)
FAULTS = (signal.SIGKILL, signal.SIGSTOP)


def namenode_failover(trial: PairTrial) -> bool:
    """The active NameNode is killed or stands still, the other takes over, and it comes back."""
    return _fail_over(trial, "namenode")


def resourcemanager_failover(trial: PairTrial) -> bool:
    """The active ResourceManager is killed or stands still, the other takes over, and it comes back."""
    return _fail_over(trial, "resourcemanager")


def service_failover(trial: PairTrial) -> bool:
    """The active service of two is killed or stands still, the other takes over, and it comes back."""
    pair = trial.place.pair
    pair.start()
    active = pair.find_active()
    if active is None or active.process is None or not trial.place.find_working():
        return False
    active.process.send_signal(trial.chance.choice(FAULTS))
    try:
        other = pair.other(active)
        _await_other(trial, lambda: pair.find_active() is other, "service")
    finally:
        active.process.send_signal(signal.SIGCONT)
    try:
        await_end(active)  # one that stood still knows that it is active no more
    except BenchError as error:
        trial.wrong.append(str(error))
    pair.start()
    return True


def _fail_over(trial: PairTrial, kind: str) -> bool:
    """Hit the active one when the other could take over, unless the job has ended by then."""
    place, cluster = trial.place, trial.place.stage.cluster
    await_both(cluster, kind)
    active = find_active(cluster, kind)
    if active is None or not place.find_working():
        return False
    process = daemons.find_running(cluster)[active]
    process.send_signal(trial.chance.choice(FAULTS))
    try:
        _await_other(trial, lambda: find_active(cluster, kind) not in (active, None), kind)
        time.sleep(trial.chance.choice(AWAY_SECONDS))
    finally:
        if process.is_running():  # the controller of its NameNode ends one that stands still
            process.send_signal(signal.SIGCONT)
    if active not in daemons.find_running(cluster):
        daemons.start(active)
    return True


def _await_other(trial: PairTrial, has_taken_over: Callable[[], bool], what: str) -> None:
    """Wait until the other one is active; when it is not in time, that is wrong."""
    try:
        until(has_taken_over, TAKEN_SECONDS, f"the other {what} is active")
    except BenchError as error:
        trial.wrong.append(str(error))
