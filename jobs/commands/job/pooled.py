"""Jobs in pools, given, followed and ended without a JVM."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import click
from click.core import ParameterSource

from hadoop.client.filesystem import FileSystem
from hadoop.client.yarn import Application
from hadoop.errors import HadoopError
from hadoop.rest.webhdfs import WebHdfs
from jobs.application import job_record
from jobs.application.following import Sight
from jobs.application.status import JobStatus
from jobs.commands.job import attend, bars
from jobs.commands.job.records import application_json
from jobs.commands.options import page_reader, progress_console, show
from jobs.engines.network import choose
from jobs.errors import JobError
from jobs.job_ids import POOL_JOB, application_of
from jobs.kinds.pool.client import Ended, Pool, Pools, patiently
from jobs.kinds.pool.request import OF_JOBS, check_files, check_fits
from jobs.kinds.pool.wishes import JobWish
from locality.program_names import FORMER

POLL_SECONDS = 0.2
OF_NETWORK = ("engine", "model", "weights", "labels", "batch")
"""What a job may say although its pool has decided it: then it has to be the same."""
ENDS = {"succeeded": "SUCCEEDED", "failed": "FAILED", "killed": "KILLED"}


@dataclass(frozen=True)
class Wanted:
    """What is said of a job for the pool alone."""

    pool: str
    weight: float
    patience: float


def submit(home: Path, hadoop: dict[str, Any], given: Mapping[str, Any], wanted: Wanted) -> tuple[Followed, str]:
    """Give a job to a pool; who can follow it, and its id. JobError when the pool cannot do it."""
    named = _named(given)
    where = page_reader(home, hadoop)
    pools = Pools(where.conf_dir, where.user)
    own = {name: given[name] for name in OF_JOBS}
    waits = {"capability_wait": given["capability_wait"], "patience": given["container_wait"] + wanted.patience}
    wish = JobWish(key=uuid4().hex, weight=wanted.weight, **own, **waits)

    def give() -> tuple[Pool, str, list[str]]:
        pool = pools.find(wanted.pool)
        wants, files = _wants(given, named, pool.settings.job)
        check_fits(wanted.pool, pool, wants)
        check_files(wanted.pool, pool, files)
        return pool, *pool.submit(wish)

    pool, job_id, notes = patiently(wanted.patience, give, _say)
    for note in notes:
        _say(note)
    return Followed(pools, pool), job_id


def show_status(home: Path, hadoop: dict[str, Any], job_id: str, watch: bool, as_json: bool) -> None:
    """How far a job in a pool is."""
    followed = _followed(home, hadoop, job_id)
    if watch:
        attend.watch(followed, job_id, progress_console, followed.ask)
    found = followed.look(job_id)
    seen = followed.ask(found)
    body = application_json(found) | {"status": seen.to_json() if seen else None}
    said = f"{found.state} {found.final} {found.progress:.0%} {found.diagnostics}".strip()
    show(as_json, body, bars.snapshot(Sight(found, seen), said))


def kill(home: Path, hadoop: dict[str, Any], job_id: str) -> str:
    """End a job in a pool; what became of it, in words."""
    followed = _followed(home, hadoop, job_id)
    before = followed.look(job_id)
    if before.has_ended:
        return f"{job_id} had ended already: {before.final.lower()}"
    followed.kill(job_id)
    after = followed.look(job_id)
    return f"{job_id} killed" if after.final == "KILLED" else f"{job_id} could not be killed any more: it is ending"


def list_kept(filesystem: FileSystem, known: Iterable[Application]) -> Iterator[Application]:
    """The jobs in pools of which a record is kept; those of a pool that YARN says has ended, have ended too."""
    going = {one.application_id for one in known if not one.has_ended}
    folder = f"{filesystem.home()}/.nodewise/{job_record.FOLDER}"
    if not filesystem.exists(folder):
        return
    for entry in filesystem.entries(folder):
        job_id = entry.name.removesuffix(".json")
        if POOL_JOB.fullmatch(job_id):
            with suppress(HadoopError, JobError):  # it has just been let go of, or is no record
                if record := job_record.load(filesystem, job_id):
                    yield _application(record.status, record.said, application_of(job_id) not in going)


class Followed:
    """A job in a pool as its owner follows it; what its pool does not know any more, its record tells."""

    def __init__(self, pools: Pools, pool: Pool | None) -> None:
        self._pools = pools
        self._pool = pool
        self._status: JobStatus | None = None

    def look(self, job_id: str) -> Application:
        """The job as it is now, as if it were an application of its own."""
        try:
            if self._pool:
                body, said = self._pool.job(job_id)
                self._status = JobStatus.from_json(body)
                return _application(self._status, said, is_over=False)
        except Ended:
            self._pool = None
        except JobError:  # the pool goes on: it does not know the job any more, or its master does not answer now
            pass
        record = job_record.load(self._pools.filesystem, job_id)
        if record is None:
            raise JobError(f"nothing is kept of {job_id}", remedy="`nodewise job list` shows the jobs")
        self._status = record.status
        return _application(record.status, record.said, is_over=self._pool is None)

    def ask(self, _: Application) -> JobStatus | None:
        """What was said of it last."""
        return self._status

    def follow(self, job_id: str, progress: Callable[[Application], None]) -> Application:
        """Wait for its end; JobError when it did not succeed."""
        while not (found := self.look(job_id)).has_ended:
            progress(found)
            time.sleep(POLL_SECONDS)
        progress(found)
        if found.final != "SUCCEEDED":
            raise JobError(f"{job_id} {found.final.lower()}: {found.diagnostics}")
        return found

    def kill(self, job_id: str) -> None:
        """End it."""
        if self._pool:
            self._pool.kill(job_id)

    @property
    def files(self) -> WebHdfs:
        """Where its results are."""
        return self._pools.filesystem

    @property
    def output(self) -> str:
        """Its output, a path without a scheme; "" before it was looked at."""
        return str((self._status.section or {}).get("Output", "")) if self._status else ""


def _followed(home: Path, hadoop: dict[str, Any], job_id: str) -> Followed:
    where = page_reader(home, hadoop)
    pools = Pools(where.conf_dir, where.user)
    try:
        return Followed(pools, pools.of(application_of(job_id)))
    except Ended:
        return Followed(pools, None)


def _application(status: JobStatus, said: str, is_over: bool) -> Application:
    """What YARN would say of a job; one that was at work in a pool that `is_over` was ended with it."""
    final = ENDS.get(status.state, "KILLED" if is_over else "UNDEFINED")
    return Application(
        application_id=status.job_id,
        name=f"nodewise {status.kind}",
        state="RUNNING" if final == "UNDEFINED" else "FINISHED",
        final=final,
        progress=status.done / status.of if status.of else 0.0,
        diagnostics=said or ("its pool has ended" if status.state not in ENDS and is_over else ""),
        host="N/A",
        started_at=0.0,
        tags=frozenset({job_record.kind_tag(status.kind)}),
        attempt=status.attempt,
    )


def _named(given: Mapping[str, Any]) -> set[str]:
    """The options that were given as words; JobError for one that only a pool can have."""
    context = click.get_current_context()
    named = {name for name in given if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    flags = {one.name: one.opts[0] for one in context.command.params}
    if others := sorted(flags[name] for name in named - {*OF_JOBS, *OF_NETWORK, "capability_wait", "container_wait"}):
        raise JobError(
            f"{', '.join(others)} cannot be given with --pool: a pool's workers are there already",
            remedy="give it to `nodewise pool up`, or leave out --pool",
        )
    return named


def _wants(
    given: Mapping[str, Any], named: set[str], had: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Path | None]]:
    """What the job wants of its network, in the words of the pool's settings, and which files it wants to have."""
    former = FORMER.get(given["engine"], given["engine"])
    engine, _, model = former.partition(".") if "engine" in named else (str(had["engine"]), "", "")
    wants: dict[str, Any] = {"engine": engine} if "engine" in named else {}
    files: dict[str, Path | None] = {name: Path(given[name]) for name in ("weights", "labels") if name in named}
    if model or "model" in named:
        network = choose(engine, given["model"] or model or None, files.get("weights"), files.get("labels"))
        wants["model"] = network.model
        if network.graph:  # what lies beside it belongs to it
            files |= {"weights": network.weights, "preparation": network.preparation}
    return wants | ({"batch": given["batch"]} if "batch" in named else {}), files


def _say(line: str) -> None:
    progress_console.print(line, style="dim")
