"""Puts the agent on machines over SSH and starts it there; from then on the service and the agent speak REST."""

from __future__ import annotations

import http.client
import json
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import paramiko

from infosvc.bundle import AGENT, MANIFEST, Bundle
from infosvc.errors import Conflict, InfoError, InvalidInput, NotReady, Unreachable
from infosvc.records import check_node_name
from infosvc.ssh import Connection, Route, route

DEFAULT_DIRECTORY = ".nodewise/agents/{node}"
DEFAULT_AGENT_PORT = 8410
MAX_HOSTS_AT_ONCE = 16
HEALTH_SECONDS = 10.0
NODE_PYTHON = (3, 11)


# These run on the node, by python3 -c, with the words after them as sys.argv[1:]; the first also on an old Python.
_PREPARE = """
import json, os, shutil, sys, tempfile
answer = {"python": list(sys.version_info[:2])}
directory = os.path.realpath(os.path.join(os.path.expanduser("~"), sys.argv[1]))
try:
    os.makedirs(os.path.join(directory, "releases"), exist_ok=True)
    os.chmod(directory, 0o700)
    tempfile.TemporaryFile(dir=directory).close()
    answer.update(directory=directory, free=shutil.disk_usage(directory).free)
except OSError as error:
    answer["error"] = str(error)
print(json.dumps(answer))
"""
_HASHES = """
import hashlib, json, os, sys
os.chdir(sys.argv[1])
print(json.dumps({name: hashlib.sha256(open(name, "rb").read()).hexdigest() for name in sys.argv[2:]}))
"""
_KEEP_ONLY = """
import os, shutil, sys
for name in set(os.listdir(sys.argv[1])) - {sys.argv[2]}:
    shutil.rmtree(os.path.join(sys.argv[1], name), ignore_errors=True)
"""
_STOP = """
import os, subprocess, sys
directory = os.path.realpath(os.path.join(os.path.expanduser("~"), sys.argv[1]))
agent = os.path.join(directory, "current", sys.argv[2])
if os.path.exists(agent):
    settings = os.path.join(directory, "settings.json")
    sys.exit(subprocess.call([sys.executable, agent, "--settings", settings, "--stop"]))
"""


@dataclass(frozen=True)
class RemoteOptions:
    """How to reach machines and where things go on them.

    `directory` is relative to the login's home directory; `{node}` in it becomes the node's name. `allow` lists
    directories of the machine from which registered absolute commands may be started; none keeps those that an
    earlier enrolment allowed.
    """

    ssh_config: Path | None = None
    user: str | None = None
    identity: Path | None = None
    known_hosts: Path | None = None
    directory: str = DEFAULT_DIRECTORY
    agent_port: int = DEFAULT_AGENT_PORT
    allow: tuple[str, ...] = ()


@dataclass(frozen=True)
class Enrolled:
    """A machine whose agent answers at `address` (host:port)."""

    node_name: str
    address: str
    agent_version: str


def enrol(
    hosts: Sequence[str],
    options: RemoteOptions,
    bundle: Bundle,
    service_url: str,
    token: str,
    on_done: Callable[[str, Enrolled | InfoError], None] | None = None,
) -> dict[str, Enrolled | InfoError]:
    """Push the bundle to every host and launch its agent, many at once: host -> what stands there, or why not.

    The node's name is the host as given here. Not one failure is raised; `on_done` is called as each host ends.
    """

    def enrol_one(host: str) -> Enrolled | InfoError:
        try:
            with Machine(host, options) as machine:
                return machine.install(bundle, service_url, token)
        except InfoError as error:
            return error
        except ValueError as error:
            return InvalidInput(f"{host} cannot be enrolled: {error}", "host")

    results: dict[str, Enrolled | InfoError] = {}
    unique = list(dict.fromkeys(hosts))
    # Many threads are no burden here: each mostly waits for the network.
    with ThreadPoolExecutor(max_workers=min(MAX_HOSTS_AT_ONCE, max(len(unique), 1))) as pool:
        futures = {pool.submit(enrol_one, host): host for host in unique}
        for future in as_completed(futures):
            host = futures[future]
            results[host] = future.result()
            if on_done is not None:
                on_done(host, results[host])
    return {host: results[host] for host in unique}


class Machine:
    """One host; a context manager, connected on entry. Every call raises an InfoError that is one sentence."""

    def __init__(self, host: str, options: RemoteOptions) -> None:
        self.node_name = check_node_name(host)
        for directory in options.allow:
            if not directory.startswith("/"):
                raise InvalidInput(f"the allowed directory {directory!r} is not absolute: give its whole path", "allow")
        self._options = options
        self._way = _way(host, options)
        self._connection = Connection(self._way)

    def __enter__(self) -> Machine:
        self._connection.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.__exit__()

    def install(self, bundle: Bundle, service_url: str, token: str) -> Enrolled:
        """Push, verify, switch to the new release, launch, and wait until the agent answers from here."""
        base = self._prepare(sum(file.stat().st_size for file in bundle.directory.rglob("*") if file.is_file()))
        release = base / "releases" / f"{bundle.version}-{secrets.token_hex(4)}"
        self._transfer(lambda sftp: _push(sftp, bundle, release), base)
        self._verify(bundle, release)
        self._transfer(lambda sftp: self._configure(sftp, base, release, service_url, token), base)
        # The new agent ends the one before it, and returns when it listens.
        program, settings = str(base / "current" / AGENT), str(base / "settings.json")
        self._connection.run(["python3", program, "--settings", settings, "--detach"])
        self._python(_KEEP_ONLY, str(base / "releases"), release.name)
        try:
            return self._await_health(bundle.version)
        except InfoError:
            with suppress(InfoError):
                self.stop()
            raise

    def stop(self) -> None:
        """End the agent that was installed here."""
        directory = self._options.directory.replace("{node}", self.node_name)
        self._python(_STOP, directory, AGENT)

    def _prepare(self, bytes_needed: int) -> PurePosixPath:
        """Check python3, make the directory and measure its space; return its absolute path."""
        directory = self._options.directory.replace("{node}", self.node_name)
        answer = self._answer(_PREPARE, directory)
        if tuple(answer["python"]) < NODE_PYTHON:
            found, needed = (".".join(map(str, version)) for version in (answer["python"], NODE_PYTHON))
            raise NotReady(f"{self.node_name} has python3 {found}: an agent needs {needed} or newer")
        if "error" in answer:
            raise NotReady(
                f"{directory} cannot be used on {self.node_name}: {answer['error']}; choose another directory"
            )
        if answer["free"] < 2 * bytes_needed:
            raise NotReady(
                f"{answer['directory']} on {self.node_name} has {answer['free']} bytes free and {2 * bytes_needed} are "
                "needed: make room, or choose another directory"
            )
        return PurePosixPath(answer["directory"])

    def _transfer(self, work: Callable[[paramiko.SFTPClient], None], base: PurePosixPath) -> None:
        with self._connection.sftp() as sftp:
            try:
                work(sftp)
            except (OSError, EOFError, paramiko.SSHException) as error:
                raise NotReady(
                    f"{base} on {self.node_name} cannot be written ({error}): check its free space and its owner"
                ) from error

    def _verify(self, bundle: Bundle, release: PurePosixPath) -> None:
        found = self._answer(_HASHES, str(release), *bundle.manifest)
        wrong = sorted(name for name, digest in bundle.manifest.items() if found.get(name) != digest)
        if wrong:
            raise Conflict(f"{', '.join(wrong)} arrived changed on {self.node_name}: enrol it again")

    def _configure(
        self, sftp: paramiko.SFTPClient, base: PurePosixPath, release: PurePosixPath, service_url: str, token: str
    ) -> None:
        settings = {
            "node_name": self.node_name,
            "host": self._way.address,
            "port": self._options.agent_port,
            "service_url": service_url,
            "token_file": str(base / "token"),
            "directory": str(base / "current"),
            "state_dir": str(base / "state"),
            "allow": list(self._options.allow) or _former_allow(sftp, base),
        }
        _write_private(sftp, base / "token", token + "\n")
        _write_private(sftp, base / "settings.json", json.dumps(settings, indent=1) + "\n")
        with suppress(FileNotFoundError):
            sftp.remove(str(base / "current.new"))
        sftp.symlink(str(release), str(base / "current.new"))
        sftp.posix_rename(str(base / "current.new"), str(base / "current"))

    def _python(self, program: str, *arguments: str) -> str:
        return self._connection.run(["python3", "-c", program, *arguments])

    def _answer(self, program: str, *arguments: str) -> dict[str, Any]:
        output = self._python(program, *arguments)
        try:
            answer: dict[str, Any] = json.loads(output)
        except ValueError as error:
            raise NotReady(
                f"{self.node_name} answers with text of its own, {output[:60]!r}: a login that runs a command must "
                "print nothing else, see its shell's start files"
            ) from error
        return answer

    def _await_health(self, version: str) -> Enrolled:
        enrolled = Enrolled(self.node_name, f"{self._way.address}:{self._options.agent_port}", version)
        deadline = time.monotonic() + HEALTH_SECONDS
        while time.monotonic() < deadline:
            with suppress(OSError, http.client.HTTPException, ValueError):
                health = _health(self._way.address, self._options.agent_port)
                if (health.get("node_name"), health.get("agent_version")) == (self.node_name, version):
                    return enrolled
            time.sleep(0.1)
        raise Unreachable(
            f"the agent runs on {self.node_name}, but {enrolled.address} does not answer from here: "
            "open that port between this machine and the node, or choose another one"
        )


def _way(host: str, options: RemoteOptions) -> Route:
    """The client configuration's route with what the options say instead."""
    way = route(host, options.ssh_config)
    given: dict[str, object] = {}
    if options.user:
        given["user"] = options.user
    if options.identity:
        given["identities"] = (str(options.identity),)
    if options.known_hosts:
        given["known_hosts"] = (*way.known_hosts, str(options.known_hosts))
    return replace(way, **given)  # type: ignore[arg-type]


def _push(sftp: paramiko.SFTPClient, bundle: Bundle, release: PurePosixPath) -> None:
    """Copy every file of the bundle into a directory that does not exist yet."""
    folders = {PurePosixPath(name).parent for name in bundle.manifest}
    for folder in sorted({PurePosixPath(), *folders}):
        sftp.mkdir(str(release / folder), 0o700)
    for name in (*bundle.manifest, MANIFEST):
        target = str(release / name)
        sftp.put(str(bundle.directory / name), target)
        sftp.chmod(target, 0o700 if name in bundle.manifest else 0o600)


def _former_allow(sftp: paramiko.SFTPClient, base: PurePosixPath) -> list[str]:
    """What an earlier enrolment allowed, none when there was none."""
    try:
        with sftp.open(str(base / "settings.json")) as file:
            return list(json.loads(file.read())["allow"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return []


def _write_private(sftp: paramiko.SFTPClient, target: PurePosixPath, text: str) -> None:
    """Replace a file in one step by one that only its owner could ever read."""
    new = f"{target}.new"
    with suppress(FileNotFoundError):
        sftp.remove(new)
    with sftp.open(new, "wx") as file:
        file.chmod(0o600)
        file.write(text)
    sftp.posix_rename(new, str(target))


def _health(address: str, port: int) -> dict[str, object]:
    connection = http.client.HTTPConnection(address, port, timeout=2.0)
    try:
        connection.request("GET", "/healthz")
        answer: dict[str, object] = json.loads(connection.getresponse().read())
        return answer
    finally:
        connection.close()
