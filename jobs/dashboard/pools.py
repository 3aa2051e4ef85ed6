"""Pools: which there are, what one of the caller's has and does, and jobs that callers give to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import uuid4

from infosvc.wire.bodies import PoolJobBody
from infosvc.wire.errors import Conflict, NotFound, NotReady
from jobs.application.following import Sight
from jobs.dashboard.places import Places
from jobs.dashboard.pool_answers import GivenJob, ListedPool, ListedPools, PoolJob, PoolWorker, ShownPool
from jobs.dashboard.sources.eyes import Eyes
from jobs.errors import JobError
from jobs.kinds.pool.about import tell_settings
from jobs.kinds.pool.client import Ended, Found, NotNow, Pool
from jobs.kinds.pool.request import OF_JOBS, check_fits
from jobs.kinds.pool.wishes import IDLE_FOR, JobWish

SHOW_SECONDS, GIVE_SECONDS = 5.0, 30.0
"""How long a pool's master may take for an answer."""
AWAY_SECONDS = 2.0
"""How long it may be away when it is given a job: callers of the service ask again by themselves."""
CAPABILITY_SECONDS = 10.0
"""How long it may wait for values of a job's capability."""
MOST_AT_ONCE = 4
"""Jobs that are being given: each may wait for a large folder, and other calls need room, too."""
MOST_OF_ONE = 2
"""Half of these for one user: other users find the rest."""
OF_NETWORK = ("engine", "model", "batch")


def list_pools(found: Sequence[Found], eyes: Eyes, user: str) -> ListedPools:
    """Those that the eyes may see; `user` is whose pools the caller may use."""
    seen = [one for one in found if eyes.user in (None, one.user)]
    return ListedPools(tuple(_row(one, user) for one in seen))


def _row(one: Found, user: str) -> ListedPool:
    about = {key: getattr(one, key) for key in ("name", "user", "queue", "state", "started_at")}
    return ListedPool(job_id=one.application_id, own=one.user == user, **about)


def show_pool(name: str, pool: Pool, sight: Sight) -> ShownPool:
    """A pool with what its application master says now, or said last; NotFound when it has ended, HadoopError."""
    jobs: tuple[PoolJob, ...] | None = None
    said = ""
    try:
        jobs = tuple(PoolJob.from_json(one) for one in pool.jobs(SHOW_SECONDS, 0.0))
    except Ended as error:
        raise NotFound(str(error)) from error
    except JobError as error:
        said = str(error)
    about, status = tell_settings(name, pool), sight.status
    return ShownPool(
        **about,
        ends_in=_ends_in(about["idle_seconds"], sight),
        headline=sight.headline(),
        silent_seconds=sight.silent if status else None,
        nodes=tuple(PoolWorker(**vars(node)) for node in status.nodes) if status else (),
        jobs=jobs,
        said=said,
    )


def _ends_in(idle: float | None, sight: Sight) -> float | None:
    """Seconds until it has been idle for so long; the master says 0 while it works, one of before says nothing."""
    idle_for = (sight.status.section or {}).get(IDLE_FOR) if sight.status else None
    if not idle or not idle_for or not isinstance(idle_for, int):  # it is the word of a user's program
        return None
    return max(0.0, idle - idle_for - sight.silent)


class Giving:
    """Gives jobs to pools; safe for several threads."""

    def __init__(self) -> None:
        self._places = Places(MOST_AT_ONCE, MOST_OF_ONE, "jobs", "are being given to pools")

    def give(
        self, user: str, name: str, find: Callable[[], Pool], body: PoolJobBody, note: Callable[[], None]
    ) -> GivenJob:
        """Give a job of a user of the service to the pool that `find` finds; `note` is called before.

        NotFound when there is no such pool, NotReady when it cannot have the job now, Conflict when it never can.
        TooManyRequests to a user who gives many jobs at once.
        """
        with self._places.take(user):
            return self._give(name, find, body, note)

    def _give(self, name: str, find: Callable[[], Pool], body: PoolJobBody, note: Callable[[], None]) -> GivenJob:
        try:
            pool = _find(find)
            wants = {what: value for what in OF_NETWORK if (value := getattr(body, what)) is not None}
            own = {what: getattr(body, what) for what in OF_JOBS}
            wish = JobWish(key=uuid4().hex, weight=body.weight, capability_wait=CAPABILITY_SECONDS, **own)
            check_fits(name, pool, wants)
            note()
            job_id, notes = pool.submit(wish, GIVE_SECONDS, AWAY_SECONDS)
        except Ended as error:
            raise NotFound(error.message, remedy=error.remedy) from error
        except NotNow as error:
            raise NotReady(error.message, remedy=error.remedy) from error
        except JobError as error:
            raise Conflict(error.message, remedy=error.remedy) from error
        return GivenJob(job_id, tuple(notes))


def _find(find: Callable[[], Pool]) -> Pool:
    try:
        return find()
    except JobError as error:  # no pool has this name, or none could have it
        raise NotFound(error.message, remedy=error.remedy) from error
