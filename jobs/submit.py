"""A job on its way to YARN: refuse what cannot work, lay out its files, submit, follow."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hadoop.filesystem import FileSystem
from hadoop.jvm import HadoopHome
from hadoop.yarn import Application, Launch, Yarn
from infosvc.client import InfoClient
from infosvc.errors import Forbidden, InfoError
from infosvc.records import Role
from jobs import capability, history, kept
from jobs.engines import check_engine
from jobs.errors import JobError
from jobs.package import code_zip
from jobs.settings import JobSettings
from locality.policies import policy

MASTER_MEMORY_MB = 640
POLL_SECONDS = 0.5
JOB_TOKEN_SECONDS = 2 * 86_400.0


@dataclass(frozen=True)
class Request:
    """What the user asks for. Waits are in seconds; the pythons are paths on the nodes; `token` lets speeds be kept.

    `ca_file` names the authority of an https information service.
    """

    input: str
    output: str
    engine: str
    policy: str
    capability: str
    info_url: str
    token: str | None
    master_python: str
    worker_python: str
    batch: int = 32
    memory_mb: int = 1152
    vcores: int = 1
    container_wait: float = 60.0
    capability_wait: float = 20.0
    weights: Path | None = None
    labels: Path | None = None
    ca_file: Path | None = None


class Submitter:
    """One session with HDFS and YARN. Errors are JobError, HadoopError, InfoError or PlanError, each one sentence."""

    def __init__(self, home: HadoopHome, say: Callable[[str], None]) -> None:
        self._home = home
        self._say = say
        self.filesystem = FileSystem()
        self.yarn = Yarn()
        self._revoke: Callable[[], None] = lambda: None

    def check(self, request: Request) -> None:
        """Find what cannot work before anything is submitted."""
        check_engine(request.engine)
        policy(request.policy)
        if not self.filesystem.exists(request.input):
            raise JobError(
                f"{request.input} is not in HDFS: `nodewise images load DIR {request.input}` puts pictures there"
            )
        if self.filesystem.exists(request.output):
            raise JobError(f"{request.output} exists already: choose another --output, results are never overwritten")
        nodes = self.yarn.running_nodes()
        if not nodes:
            raise JobError("no NodeManager takes work: `nodewise cluster status` shows what is up")
        client = self._client(request)
        capability.wait(
            client,
            request.capability,
            nodes,
            request.capability_wait,
            lambda missing: self._say(f"waiting for {request.capability} of {', '.join(missing)}"),
        )

    def submit(self, request: Request) -> str:
        """Lay out the job's files and hand it to YARN; the application id is the job's id."""
        application_id, context = self.yarn.new_application()
        staging = self._staging(application_id)
        settings = self._settings(request, application_id, staging)
        try:
            files = self._stage(request, settings)
            launch = Launch(
                argv=[request.master_python, "-m", "jobs.partitioner", "job.json"],
                environment={
                    "PYTHONPATH": "code.zip",
                    "PYTHONUNBUFFERED": "1",
                    "HADOOP_USER_NAME": self._home.user,
                },
                files=files,
                memory_mb=MASTER_MEMORY_MB,
                vcores=1,
            )
            tags = kept.tags(settings.output)
            self.yarn.submit(context, f"nodewise {request.engine}", launch, self.filesystem, tags)
        except BaseException:
            self._end_token()
            self.filesystem.delete(staging)
            raise
        return application_id

    def follow(self, application_id: str, progress: Callable[[Application], None]) -> Application:
        """Wait for the end; JobError carries the application master's sentence when it did not succeed."""
        while not (application := self.yarn.application(application_id)).ended:
            progress(application)
            time.sleep(POLL_SECONDS)
        progress(application)
        self._end_token()
        if application.final != "SUCCEEDED":
            # An application master that was killed could not take its half-written files away.
            self.filesystem.delete(self._staging(application_id))
            raise JobError(f"{application_id} {application.final.lower()}: {_first_line(application)}")
        return application

    def kill(self, application_id: str) -> None:
        """End a job with all its containers and take its half-written files away."""
        self.yarn.kill(application_id)
        while not self.yarn.application(application_id).ended:
            time.sleep(POLL_SECONDS)
        self.filesystem.delete(self._staging(application_id))

    def _end_token(self) -> None:
        """Revoke the token that was made for a job; one that cannot be revoked now ends by itself."""
        with suppress(InfoError):
            self._revoke()

    def _staging(self, application_id: str) -> str:
        return f"{self._path(self.filesystem.home())}/.nodewise/{application_id}"

    def _path(self, name: str) -> str:
        """A path of HDFS without scheme and host."""
        return str(self.filesystem.path(name).toUri().getPath())

    def _settings(self, request: Request, application_id: str, staging: str) -> JobSettings:
        return JobSettings(
            job_id=application_id,
            input=self._path(request.input),
            output=self._path(request.output),
            staging=staging,
            engine=request.engine,
            policy=request.policy,
            capability=request.capability,
            info_url=request.info_url,
            conf_dir=str(self._home.conf_dir),
            jars=str(self._home.jars),
            user=self._home.user,
            worker_python=request.worker_python,
            batch=request.batch,
            memory_mb=request.memory_mb,
            vcores=request.vcores,
            container_wait=request.container_wait,
            weights=f"weights-{request.weights.name}" if request.weights else None,
            labels=f"labels-{request.labels.name}" if request.labels else None,
        )

    def _stage(self, request: Request, settings: JobSettings) -> dict[str, str]:
        """Everything the containers need, in a folder that only this user may enter; name -> path."""
        self.filesystem.make_folder(settings.staging, mode=0o700)
        contents = {"job.json": settings.to_bytes(), "code.zip": code_zip()}
        if request.token:
            contents["info_token"] = self._job_token(request, settings.job_id).encode()
        if request.ca_file:
            contents["info_ca"] = request.ca_file.read_bytes()
        for name, content in contents.items():
            self.filesystem.write(f"{settings.staging}/{name}", content, mode=0o600)
        for local, staged in ((request.weights, settings.weights), (request.labels, settings.labels)):
            if local and staged:
                self.filesystem.upload(local.absolute(), f"{settings.staging}/{staged}")
        return {name: f"{settings.staging}/{name}" for name in contents}

    def _client(self, request: Request) -> InfoClient:
        return InfoClient(request.info_url, request.token, ca_file=request.ca_file)

    def _job_token(self, request: Request, job_id: str) -> str:
        """A token that is good for writing values and ends by itself; who may make none lends the job their own."""
        client = self._client(request)
        try:
            history.prepare(client, request.engine, request.batch)
            made, text = client.create_token(f"job {job_id}", Role.PROCESSOR, expires_in=JOB_TOKEN_SECONDS)
        except Forbidden:
            return str(request.token)
        self._revoke = lambda: client.revoke_token(made.token_id)
        return text


def _first_line(application: Application) -> str:
    said = application.diagnostics.split("\n", maxsplit=1)[0]
    return said or "it left no reason; `nodewise job logs` shows its output"
