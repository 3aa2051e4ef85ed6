"""The application master's work, step by step: know, decide, run, check, store.

Which nodes are good at what is not decided here: the capability is whatever data name the job was told to read.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import UTC, datetime

from hadoop.filesystem import FileSystem
from hadoop.master import MasterSession
from hadoop.yarn import Launch
from infosvc.client import InfoClient
from infosvc.errors import InfoError
from jobs import history
from jobs.decision import Decision
from jobs.partitioner.api import Listener
from jobs.partitioner.containers import Containers
from jobs.partitioner.knowledge import Knowledge, know
from jobs.partitioner.output import Output
from jobs.partitioner.summary import summarise
from jobs.report import JobReport
from jobs.settings import JobSettings, WorkerSettings
from locality.policies import policy
from locality.quality import judge
from locality.types import Plan

HEARTBEAT_SECONDS = 0.25
CODE = "code.zip"


class Partitioner:
    """One job. `run` returns its report; JobError, HadoopError, InfoError or PlanError say why there is none."""

    def __init__(
        self,
        settings: JobSettings,
        filesystem: FileSystem,
        session: MasterSession,
        client: InfoClient,
        listener: Listener,
        token: str,
    ) -> None:
        self._settings = settings
        self._filesystem = filesystem
        self._session = session
        self._client = client
        self._listener = listener
        self._token = token
        self._output = Output(filesystem, settings)

    def run(self) -> JobReport:
        """Everything between registering and leaving."""
        started, started_at = time.monotonic(), datetime.now(UTC).isoformat(timespec="milliseconds")
        known = know(self._filesystem, self._client, self._settings)
        decision = self.decide(known)
        plan = decision.plan
        self._say(f"plan: {plan.loads()}")
        self._output.prepare(decision)
        self._run_containers(plan)
        self._output.check([block.name for block in known.blocks], plan)
        done = self._listener.finished()
        report = summarise(self._settings, plan, known.values, done, known.speeds, started_at)
        report = self._remember(report, wall_seconds=time.monotonic() - started)
        self._output.commit(report)
        return report

    def decide(self, known: Knowledge) -> Decision:
        """Whatever the named policy makes of it, with what it was made from."""
        settings, terms = self._settings, known.terms
        numbers = known.numbers()
        started = time.monotonic()
        plan = policy(settings.policy)(known.blocks, numbers, terms)
        planning_seconds = time.monotonic() - started
        return Decision(
            job_id=settings.job_id,
            made_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            input=settings.input,
            engine=settings.engine,
            batch=settings.batch,
            policy=settings.policy,
            capability=settings.capability,
            capabilities=known.judgements,
            speeds=known.speeds,
            terms=terms,
            blocks=known.blocks,
            plan=plan,
            quality=judge(plan, known.blocks, numbers, terms),
            planning_seconds=planning_seconds,
        )

    def _run_containers(self, plan: Plan) -> None:
        total = sum(plan.loads().values())
        launches = {
            node_name: self._prepare(node_name, [part.block.name for part in parts])
            for node_name, parts in plan.parts.items()
            if parts
        }
        containers = Containers(
            self._session,
            launches,
            self._settings.container_wait,
            self._settings.worker_silence,
            time.monotonic(),
            self._listener,
        )
        while not containers.step(time.monotonic(), self._listener.images_done() / total):
            time.sleep(HEARTBEAT_SECONDS)

    def _prepare(self, node_name: str, images: list[str]) -> Launch:
        """Write a node's share into the staging folder and say how to start its worker."""
        settings = self._settings
        share = WorkerSettings(
            node_name=node_name,
            master=self._listener.address,
            token=self._token,
            engine=settings.engine,
            batch=settings.batch,
            threads=settings.vcores,
            weights=settings.weights,
            labels=settings.labels,
            results=self._output.part(node_name),
            images=images,
        )
        stored = f"{settings.staging}/worker-{node_name}.json"
        # Only this user may read it: it holds the token.
        self._filesystem.write(stored, share.to_bytes(), mode=0o600)
        extra = {name: f"{settings.staging}/{name}" for name in (settings.weights, settings.labels) if name}
        return Launch(
            argv=[settings.worker_python, "-m", "jobs.worker", "worker.json"],
            environment=self._environment(),
            files={CODE: f"{settings.staging}/{CODE}", "worker.json": stored, **extra},
            memory_mb=settings.memory_mb,
            vcores=settings.vcores,
        )

    def _environment(self) -> dict[str, str]:
        threads = str(self._settings.vcores)
        return {
            "PYTHONPATH": CODE,
            "PYTHONUNBUFFERED": "1",
            "HADOOP_CONF_DIR": self._settings.conf_dir,
            "HADOOP_USER_NAME": self._settings.user,
            "OMP_NUM_THREADS": threads,
            "MXNET_CPU_WORKER_NTHREADS": threads,
        }

    def _remember(self, report: JobReport, wall_seconds: float) -> JobReport:
        """Write the speeds back as history; a service that is away now costs the history, not the results."""
        speeds = {node.node_name: node.images_per_second for node in report.nodes if node.images}
        note = report.note
        try:
            history.record(self._client, self._settings.engine, self._settings.batch, speeds)
        except InfoError as error:
            note = f"The speeds of this run could not be kept as history: {error}"
        return replace(report, wall_seconds=wall_seconds, note=note)

    def _say(self, line: str) -> None:
        print(f"{self._settings.job_id} on {os.environ.get('NM_HOST', '?')}: {line}", flush=True)
