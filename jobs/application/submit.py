"""A job on its way to YARN: refuse what cannot work, lay out its files, submit, follow."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import HadoopHome
from hadoop.client.yarn import Application, Launch, Yarn
from hadoop.errors import HadoopError
from hadoop.rest import site_files
from infosvc.wire.client import InfoClient
from infosvc.wire.errors import Forbidden, InfoError
from infosvc.wire.records import Role
from jobs.application import environment, model_check
from jobs.application.package import code_zip
from jobs.application.settings import JobSettings
from jobs.division import capability, decision_store, speed_history
from jobs.engines import check_engine
from jobs.engines.network import Network, choose
from jobs.errors import JobError
from jobs.images.rows_size import ROW_BYTES
from locality.policies import policy

MASTER_MEMORY_MB = 640
PROCESS_MEMORY_MB = 1024
"""Of a container, unless asked for otherwise: one process for each vcore, and the one they are forked from."""
POLL_SECONDS = 0.5
JOB_TOKEN_SECONDS = 2 * 86_400.0
MOST_ATTEMPTS = "yarn.resourcemanager.am.max-attempts"
DEFAULT_MOST_ATTEMPTS = 2
LENT_ROLES = (Role.PROCESSOR, Role.SCHEDULER)
"""Whose tokens may write values and no more than start and stop slots: these may go into a job's folder."""


@dataclass(frozen=True)
class Request:
    """What the user asks for. Waits are in seconds; the pythons are paths on the nodes; `token` lets speeds be kept.

    `ca_file` names the authority of an https information service, `env` an archive in HDFS with the worker's Python;
    the others mean what they mean in `JobSettings`.
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
    memory_mb: int | None = None
    vcores: int = 1
    container_wait: float = 60.0
    capability_wait: float = 20.0
    lease_seconds: float = 10.0
    picture_seconds: float = 60.0
    steal: bool = True
    fallback: str | None = None
    env: str | None = None
    attempts: int = 2
    weights: Path | None = None
    labels: Path | None = None
    ca_file: Path | None = None
    queue: str = "default"
    model: str | None = None

    @cached_property
    def network(self) -> Network:
        """What looks at the pictures; JobError when there is no such thing."""
        return choose(self.engine, self.model, self.weights, self.labels)


@dataclass(frozen=True)
class JobToken:
    """What a job shows to the information service, None for nothing; `revoke` ends what was made for this job alone."""

    text: str | None
    revoke: Callable[[], None] = lambda: None


class Submitter:
    """One session with HDFS and YARN. Errors are JobError, HadoopError, InfoError or PlanError, each one sentence."""

    def __init__(self, home: HadoopHome, say: Callable[[str], None]) -> None:
        self._home = home
        self._say = say
        self.filesystem = FileSystem()
        self.yarn = Yarn()
        self._tokens: dict[str, JobToken] = {}
        self._row_bytes: dict[Network, int] = {}

    def check(self, request: Request) -> None:
        """Find what cannot work before anything is submitted."""
        check_engine(request.network.engine)
        policy(request.policy)
        if request.fallback:
            policy(request.fallback)
        check_attempts(self._home.conf_dir, request.attempts)
        if request.env:
            environment.named(self.filesystem, request.env)
        if not self.filesystem.exists(request.input):
            raise JobError(
                f"{request.input} is not in HDFS: `nodewise images load DIR {request.input}` puts pictures there"
            )
        if self.filesystem.exists(request.output):
            raise JobError(f"{request.output} exists already: choose another --output, results are never overwritten")
        network = request.network
        self._row_bytes[network] = model_check.check(network, request.worker_python, request.batch, self._say)
        nodes = self.yarn.running_nodes()
        if not nodes:
            raise JobError("no NodeManager takes work: `nodewise cluster status` shows what is up")
        try:
            capability.wait(
                self._client(request),
                request.capability,
                nodes,
                request.capability_wait,
                lambda missing: self._say(f"waiting for {request.capability} of {', '.join(missing)}"),
            )
        except (InfoError, JobError) as error:
            if request.fallback is None:
                raise
            self._say(f"{error}; {request.fallback} will divide the pictures instead")

    def submit(self, request: Request) -> str:
        """Lay out the job's files and hand it to YARN; the application id is the job's id."""
        decision_store.sweep(self)
        application_id, context = self.yarn.new_application()
        staging = self._staging(application_id)
        settings = self._settings(request, application_id, staging)
        try:
            files = self._stage(request, settings)
            launch = Launch(
                argv=[request.master_python, "-m", "jobs.kinds.classify", "job.json"],
                environment={
                    "PYTHONPATH": "code.zip",
                    "PYTHONUNBUFFERED": "1",
                    "HADOOP_USER_NAME": self._home.user,
                },
                files=files,
                memory_mb=MASTER_MEMORY_MB,
                vcores=1,
            )
            tags = decision_store.tags(settings.output)
            name = f"nodewise {request.network.program}"
            self.yarn.submit(context, name, launch, self.filesystem, tags, request.attempts, request.queue)
        except BaseException:
            self._end_token(application_id)
            self.filesystem.delete(staging)
            raise
        return application_id

    def follow(self, application_id: str, progress: Callable[[Application], None]) -> Application:
        """Wait for the end; JobError carries the application master's sentence when it did not succeed."""
        while not (application := self.yarn.application(application_id)).ended:
            progress(application)
            time.sleep(POLL_SECONDS)
        progress(application)
        self._end_token(application_id)
        # An application master that was killed could not take its half-written files away.
        self.filesystem.delete(self._staging(application_id))
        if application.final != "SUCCEEDED":
            raise JobError(f"{application_id} {application.final.lower()}: {_first_line(application)}")
        return application

    def kill(self, application_id: str) -> None:
        """End a job with all its containers, take its half-written files away, and the token if it was made here."""
        self.yarn.kill(application_id)
        while not self.yarn.application(application_id).ended:
            time.sleep(POLL_SECONDS)
        self._end_token(application_id)
        self.filesystem.delete(self._staging(application_id))

    def _end_token(self, application_id: str) -> None:
        """Revoke the token that was made for a job; one that cannot be revoked now ends by itself."""
        with suppress(InfoError):
            self._tokens.pop(application_id, JobToken(None)).revoke()

    def _staging(self, application_id: str) -> str:
        return f"{self._path(self.filesystem.home())}/.nodewise/{application_id}"

    def _path(self, name: str) -> str:
        """A path of HDFS without scheme and host."""
        return str(self.filesystem.path(name).toUri().getPath())

    def _settings(self, request: Request, application_id: str, staging: str) -> JobSettings:
        network, staged = request.network, request.network.staged()
        return JobSettings(
            job_id=application_id,
            input=self._path(request.input),
            output=self._path(request.output),
            staging=staging,
            engine=network.engine,
            model=network.model,
            policy=request.policy,
            capability=request.capability,
            info_url=request.info_url,
            conf_dir=str(self._home.conf_dir),
            jars=str(self._home.jars),
            user=self._home.user,
            worker_python=request.worker_python,
            batch=request.batch,
            memory_mb=request.memory_mb or PROCESS_MEMORY_MB * (1 + request.vcores),
            vcores=request.vcores,
            container_wait=request.container_wait,
            token=secrets.token_urlsafe(32),
            environment=self._path(environment.named(self.filesystem, request.env)) if request.env else None,
            lease_seconds=request.lease_seconds,
            picture_seconds=request.picture_seconds,
            steal=request.steal,
            fallback=request.fallback,
            attempts=request.attempts,
            graph=staged.get("graph"),
            weights=staged.get("weights"),
            preparation=staged.get("preparation"),
            labels=staged.get("labels"),
            row_bytes=self._row_bytes.get(network, ROW_BYTES),
        )

    def _stage(self, request: Request, settings: JobSettings) -> dict[str, str]:
        """Everything the containers need, in a folder that only this user may enter; name -> path."""
        self.filesystem.make_folder(settings.staging, mode=0o700)
        contents = {"job.json": settings.to_bytes(), "code.zip": code_zip()}
        self._tokens[settings.job_id] = token = job_token(self._client(request), request, settings.job_id, self._say)
        if token.text:
            contents["info_token"] = token.text.encode()
        if request.ca_file:
            contents["info_ca"] = request.ca_file.read_bytes()
        for name, content in contents.items():
            self.filesystem.write(f"{settings.staging}/{name}", content, mode=0o600)
        staged = request.network.staged()
        for name, file in request.network.files():
            self.filesystem.upload(file.absolute(), f"{settings.staging}/{staged[name]}")
        return {name: f"{settings.staging}/{name}" for name in contents}

    def _client(self, request: Request) -> InfoClient:
        return InfoClient(request.info_url, request.token, ca_file=request.ca_file)


def check_attempts(conf_dir: Path, attempts: int) -> None:
    """JobError when the cluster starts no application master so often: it would say nothing and do less."""
    try:
        most = int(site_files.value(conf_dir / "yarn-site.xml", MOST_ATTEMPTS))
    except (HadoopError, ValueError):
        most = DEFAULT_MOST_ATTEMPTS
    if attempts > most:
        raise JobError(
            f"{attempts} attempts are more than the {most} that the cluster allows: give --attempts {most} or fewer, "
            f"or set {MOST_ATTEMPTS} in yarn-site.xml"
        )


def job_token(client: InfoClient, request: Request, job_id: str, say: Callable[[str], None]) -> JobToken:
    """A token for writing values that ends by itself; who may make none lends the job their own, if it may do little.

    Whatever else is refused leaves the job without one, which `say` hears. InfoError: the service does not answer, and
    the job has no fallback.
    """
    if not request.token:
        return JobToken(None)
    try:
        speed_history.prepare(client, request.network.program, request.batch)
        made, text = client.create_token(f"job {job_id}", Role.PROCESSOR, expires_in=JOB_TOKEN_SECONDS)
    except Forbidden as error:
        if role_of(request.token) in LENT_ROLES:
            return JobToken(request.token)
        reason: InfoError = error
    except InfoError as error:
        if request.fallback is None:
            raise
        reason = error
    else:
        return JobToken(text, lambda: client.revoke_token(made.token_id))
    say(f"the speeds of this job will not be kept: {reason}")
    return JobToken(None)


def role_of(token: str) -> Role | None:
    """What a token may do, as its text tells; None when that was chosen by a person.

    >>> role_of("nw_reader_c2VjcmV0")
    <Role.READER: 'reader'>
    """
    return next((role for role in Role if token.startswith(f"nw_{role}_")), None)


def _first_line(application: Application) -> str:
    said = application.diagnostics.split("\n", maxsplit=1)[0]
    return said or "it left no reason; `nodewise job logs` shows its output"
