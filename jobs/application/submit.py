"""A job on its way to YARN: refuse what cannot work, lay out its files, submit, follow."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from boxes.gpus.cards import Wanted
from environments.manifest import Requires
from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import HadoopHome
from hadoop.client.yarn import Application, Launch, Where, Yarn
from hadoop.errors import HadoopError
from hadoop.rest import site_files
from hadoop.rest.told import tell_end
from infosvc.wire.client import DEFAULT_TIMEOUT, DEFAULT_URL, InfoClient
from infosvc.wire.errors import Forbidden, InfoError
from infosvc.wire.records import Role
from infosvc.wire.service_options import service_timeout
from jobs.application.environments import users
from jobs.application.environments.unfit import judge
from jobs.application.job_record import kind_tag, program_tags
from jobs.application.job_spec import INFO_CA, INFO_TOKEN, JobOptions, JobSpec
from jobs.code_archive import code_zip
from jobs.division import decision_store, kept_work
from jobs.division.gpu_nodes import GPU, find_lacking, leave_out_lacking
from jobs.errors import JobError

ENTRY = "jobs.kinds"
"""The module that runs as the application master of every kind of job."""
MASTER_MEMORY_MB = 640
FILES_OF_A_MB = 1000
"""So many files that are an image each take an application master another MB; images in packs take next to nothing."""
POLL_SECONDS = 0.5
JOB_TOKEN_SECONDS = 2 * 86_400.0
MOST_ATTEMPTS = "yarn.resourcemanager.am.max-attempts"
MOST_PRIORITY = "yarn.cluster.max-application-priority"
DEFAULT_MOST_ATTEMPTS = 2
LENT_ROLES = (Role.PROCESSOR, Role.SCHEDULER)
"""Whose tokens may write values and no more than start and stop slots: these may go into a job's folder."""


@dataclass(frozen=True)
class InfoAccess:
    """Where the information service is, what is shown to it, and the file with the authority of an https one."""

    url: str = DEFAULT_URL
    token: str | None = None
    ca_file: Path | None = None

    def client(self) -> InfoClient:
        """Whoever asks the information service in the name of a job's owner."""
        return InfoClient(self.url, self.token, service_timeout(DEFAULT_TIMEOUT), self.ca_file)


@dataclass(frozen=True)
class MasterNeeds:
    """What the application master's own container needs, which is all that a runner has; `hosts` are all it may use.

    Where it may use any, one of those that it `prefers` is taken if it has room.
    `has_uploads` says that the order's uploads lie in its folder, as a runner needs them. `archives` are paths of HDFS
    that are unpacked there, by the name of the folder that each becomes; those of `shared` are laid there as they are.
    """

    memory_mb: int = MASTER_MEMORY_MB
    vcores: int = 1
    resources: Mapping[str, int] = field(default_factory=dict)
    hosts: Sequence[str] = ()
    prefers: Sequence[str] = ()
    has_uploads: bool = False
    archives: Mapping[str, str] = field(default_factory=dict)
    shared: Mapping[str, str] = field(default_factory=dict)


def master_memory_mb(files: int) -> int:
    """What an application master needs that divides so many files."""
    return MASTER_MEMORY_MB + files // FILES_OF_A_MB


@dataclass(frozen=True)
class Order:
    """A job as its kind wants it submitted: `settings` are what the kind is told, `name` is what YARN calls it.

    `uploads` are files of this machine that are laid into the job's folder in HDFS, by their names there. Of what waits
    in its queue, YARN takes the highest `priority` first. `prepare` comes before the job gets a token for writing
    values, valid for `token_seconds`; `needs_service` says whether it cannot do without the information service. With a
    `token` of its own, the job shows that one. Its containers get only nodes that have what it `requires`, as its
    environment `env` does, and the `gpus` of each. Of what `stands`, as it is up for weeks, YARN counts the attempts of
    ten minutes alone.
    """

    kind: str
    name: str
    settings: Mapping[str, Any]
    options: JobOptions = field(default_factory=JobOptions)
    access: InfoAccess = field(default_factory=InfoAccess)
    uploads: Mapping[str, Path] = field(default_factory=dict)
    tags: Sequence[str] = ()
    prepare: Callable[[InfoClient], None] = lambda _: None
    needs_service: bool = True
    token: str | None = None
    token_seconds: float = JOB_TOKEN_SECONDS
    priority: int = 0
    master: MasterNeeds = field(default_factory=MasterNeeds)
    env: str = ""
    requires: Requires = field(default_factory=Requires)
    gpus: Wanted = field(default_factory=Wanted)
    stands: bool = False

    @property
    def resources(self) -> Mapping[str, int]:
        """What each of its containers needs of other types than memory and cores."""
        return {**self.options.resources, **({GPU: self.gpus.count} if self.gpus.count else {})}


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
        self.yarn = Yarn(say)
        self._tokens: dict[str, JobToken] = {}

    @property
    def conf_dir(self) -> Path:
        """The folder of the site files."""
        return self._home.conf_dir

    @property
    def user(self) -> str:
        """Who speaks to HDFS and YARN."""
        return self._home.user

    def check(self, order: Order) -> list[str]:
        """Find what cannot work before anything is submitted; the nodes that accept work."""
        check_attempts(self._home.conf_dir, order.options.attempts)
        check_priority(self._home.conf_dir, order.priority)
        program_tags(order.options.program)
        self._check_needs(order)
        label = order.options.node_label
        nodes = self.yarn.running_nodes(label)
        if not nodes:
            labelled = f" with the label {label}" if label else ""
            raise JobError(
                f"no NodeManager{labelled} accepts work", remedy="`nodewise cluster status` shows what is up"
            )
        if strangers := sorted(set(order.master.hosts) - set(nodes)):
            raise JobError(
                f"no NodeManager on {', '.join(strangers)} accepts work", remedy="`nodewise cluster status` shows them"
            )
        return self._without_unfit(order, nodes)

    def _without_unfit(self, order: Order, nodes: Sequence[str]) -> list[str]:
        """JobError when none of the nodes can run its environment or has its GPUs; each that cannot is told of."""
        client = order.access.client()
        unfit = judge(self.filesystem, client, order.env, order.requires, nodes)
        fitting = unfit.leave_out(nodes)
        lacking = self._find_lacking(client, order.gpus, fitting)
        for node, why in {**unfit.reasons, **lacking}.items():
            self._say(f"{node} is left out: {why}")
        return [node for node in fitting if node not in lacking]

    def _find_lacking(self, client: InfoClient, wanted: Wanted, nodes: Sequence[str]) -> Mapping[str, str]:
        """Those of the nodes that have no such GPUs, with the reason; JobError when that leaves none."""
        counted = self.yarn.count_on_nodes(GPU) if wanted.count else {}
        lacking = find_lacking(client, wanted, {node: counted[node] for node in nodes if node in counted})
        leave_out_lacking(nodes, lacking, "each of its containers asks for")
        return lacking

    def _check_needs(self, order: Order) -> None:
        """JobError where the cluster does not know a type of resource, or a label: such a job would wait for ever."""
        wanted = {*order.resources, *order.master.resources}
        known = self.yarn.resource_types() if wanted else []
        if unknown := sorted(wanted - set(known)):
            types = "type" if len(unknown) == 1 else "types"
            raise JobError(
                f"this cluster does not know the resource {types} {', '.join(unknown)}",
                remedy=f"it knows {', '.join(known)}; its nodes' resource-types.xml and yarn-site.xml name them",
            )
        label = order.options.node_label
        if label and label not in (labels := self.yarn.node_labels()):
            raise JobError(f"this cluster has no label {label}", remedy=f"it has {', '.join(labels) or 'no labels'}")

    def submit(self, order: Order, before: Callable[[], object] = lambda: None) -> str:
        """Lay out the job's files and hand it to YARN; the application id is the job's id.

        `before` is called last of all, and what it raises keeps the job from YARN.
        """
        decision_store.sweep(self)
        application_id, context = self.yarn.new_application()
        spec = self._spec(order, application_id)
        try:
            launch = Launch(
                argv=[order.options.master_python, "-m", ENTRY, "job.json"],
                environment={
                    "PYTHONPATH": "code.zip",
                    "PYTHONUNBUFFERED": "1",
                    "HADOOP_USER_NAME": self._home.user,
                },
                files=self._stage(order, spec),
                memory_mb=spec.master_memory or order.master.memory_mb,
                vcores=order.master.vcores,
                resources=order.master.resources,
                archives=order.master.archives,
                shared=order.master.shared,
            )
            master = order.master
            self.yarn.submit(
                context,
                order.name,
                launch,
                self.filesystem,
                self._tags(order),
                order.options.attempts,
                Where(order.options.queue, order.options.node_label, master.hosts, master.prefers, order.priority),
                before,
                stands=spec.stands,
            )
        except BaseException:
            self._end_token(application_id)
            self.filesystem.delete(spec.staging)
            raise
        return application_id

    def _tags(self, order: Order) -> list[str]:
        """What YARN knows it by; settings of all kinds name the parts of an environment `parts`."""
        parts = users.tags(order.settings.get("parts", {}))
        return [*order.tags, kind_tag(order.kind), *program_tags(order.options.program), *parts]

    def follow(self, application_id: str, progress: Callable[[Application], None]) -> Application:
        """Wait for the end; JobError carries the application master's sentence when it did not succeed."""
        while not (application := self.yarn.application(application_id)).has_ended:
            progress(application)
            time.sleep(POLL_SECONDS)
        progress(application)
        self._end_token(application_id)
        staging, reason = self.staging(application_id), _first_line(application)
        failed = application.final != "SUCCEEDED"
        if failed and kept_work.is_marked(self.filesystem, staging):
            reason = kept_work.with_remedy(reason, application_id)
        else:  # an application master that was killed could not take its half-written files away
            self.filesystem.delete(staging)
        if failed:
            raise JobError(f"{application_id} {application.final.lower()}: {reason}")
        return application

    def kill(self, application_id: str) -> None:
        """End a job with all its containers, take its files away, and the token if it was made here."""
        self.yarn.kill(application_id)
        while not self.yarn.application(application_id).has_ended:
            time.sleep(POLL_SECONDS)
        self._end_token(application_id)
        self.filesystem.delete(self.staging(application_id))

    def _end_token(self, application_id: str) -> None:
        """Revoke the token that was made for a job; one that cannot be revoked now ends by itself."""
        with suppress(InfoError):
            self._tokens.pop(application_id, JobToken(None)).revoke()

    def staging(self, application_id: str) -> str:
        """The folder in HDFS that holds a job's files while it runs."""
        return f"{self.path(self.filesystem.home())}/.nodewise/{application_id}"

    def path(self, name: str) -> str:
        """A path of HDFS without scheme and host."""
        return str(self.filesystem.path(name).toUri().getPath())

    def say(self, line: str) -> None:
        """Tell whoever submits."""
        self._say(line)

    def _spec(self, order: Order, application_id: str) -> JobSpec:
        return JobSpec(
            kind=order.kind,
            job_id=application_id,
            staging=self.staging(application_id),
            info_url=order.access.url,
            conf_dir=str(self._home.conf_dir),
            jars=str(self._home.jars),
            user=self._home.user,
            token=secrets.token_urlsafe(32),
            settings=order.settings,
            requires=asdict(order.requires),
            gpus=asdict(order.gpus),
            stands=order.stands,
            **asdict(order.options)
            | {
                "master_memory": order.options.master_memory or order.master.memory_mb,
                "resources": order.resources,
            },
        )

    def _stage(self, order: Order, spec: JobSpec) -> dict[str, str]:
        """Everything the containers need, in a folder that only this user may enter; what the master needs of it."""
        contents = {"job.json": spec.to_bytes(), "code.zip": code_zip()}
        self._tokens[spec.job_id] = token = job_token(order.access.client(), order, spec.job_id, self._say)
        if token.text:
            contents[INFO_TOKEN] = token.text.encode()
        if order.access.ca_file:
            contents[INFO_CA] = order.access.ca_file.read_bytes()
        self.filesystem.make_folder(spec.staging, mode=0o700)
        for name, content in contents.items():
            self.filesystem.write(f"{spec.staging}/{name}", content, mode=0o600)
        for name, local in order.uploads.items():
            self.filesystem.upload(local.absolute(), f"{spec.staging}/{name}")
        names = [*contents, *(order.uploads if order.master.has_uploads else ())]
        return {name: f"{spec.staging}/{name}" for name in names}


def check_attempts(conf_dir: Path, attempts: int) -> None:
    """JobError when the cluster allows fewer attempts; YARN would lower the number silently."""
    most = _most(conf_dir, MOST_ATTEMPTS, DEFAULT_MOST_ATTEMPTS)
    if attempts > most:
        raise JobError(
            f"{attempts} attempts are more than the {most} that the cluster allows",
            remedy=f"give --attempts {most} or fewer, or set {MOST_ATTEMPTS} in yarn-site.xml",
        )


def check_priority(conf_dir: Path, priority: int) -> None:
    """JobError when the cluster allows none that high; YARN would lower it silently."""
    most = _most(conf_dir, MOST_PRIORITY, 0)
    if priority > most:
        raise JobError(
            f"priority {priority} is higher than the {most} that the cluster allows",
            remedy=f"give --priority {most} or less, or set {MOST_PRIORITY} in yarn-site.xml",
        )


def _most(conf_dir: Path, name: str, otherwise: int) -> int:
    """A whole number of yarn-site.xml."""
    try:
        return int(site_files.value(conf_dir / "yarn-site.xml", name))
    except (HadoopError, ValueError):
        return otherwise


def job_token(client: InfoClient, order: Order, job_id: str, say: Callable[[str], None]) -> JobToken:
    """Make a short-lived token for writing values, unless the job has one or its owner has none.

    A user who may not make tokens lends the job their own, if its role is weak.

    Whatever else is refused leaves the job without one, which `say` hears. InfoError: the service does not answer, and
    the job needs it.
    """
    if order.token or not order.access.token:
        return JobToken(order.token)
    try:
        order.prepare(client)
        made, text = client.create_token(f"job {job_id}", Role.PROCESSOR, expires_in=order.token_seconds)
    except Forbidden as error:
        if role_of(order.access.token) in LENT_ROLES:
            return JobToken(order.access.token)
        reason: InfoError = error
    except InfoError as error:
        if order.needs_service:
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
    return tell_end(application.diagnostics) or "it left no reason; `nodewise job logs` shows its output"
