"""Puts the agent on machines over SSH and starts it there; from then on the service and the agent speak REST."""

from __future__ import annotations

import hashlib
import http.client
import json
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from infosvc.shipping.bundle import Bundle
from infosvc.shipping.enrolment import NOTHING
from infosvc.shipping.release import Files, Releases, Standing
from infosvc.shipping.ssh import Connection, Route, route
from infosvc.wire.bounded_answer import answer_by, new_connection, read_whole
from infosvc.wire.errors import InfoError, InvalidInput, NotFound, NotReady, Unreachable
from infosvc.wire.records import check_node_name

T = TypeVar("T")

DEFAULT_DIRECTORY = ".nodewise/agents/{node}"
DEFAULT_AGENT_PORT = 8410
MAX_HOSTS_AT_ONCE = 50
HEALTH_SECONDS = 30.0  # a busy machine takes its time, and so does a supervisor before it starts an agent again
_PROBE_SECONDS = 2.0
_MOST_BYTES = 1 << 20  # of what an agent says of itself

Admit = Callable[[str, str], str]
OwnFiles = dict[str, tuple[str, str | None]]


@dataclass(frozen=True)
class RemoteOptions:
    """How to reach machines and where things go on them.

    `directory` is relative to the login's home directory; `{node}` in it becomes the node's name. `allow` lists
    directories of the machine from which registered absolute commands may be started; with `allow_any` also ones that
    hold an interpreter. `ca_file` is whose certificate
    the service must show; `tls_dir` has a certificate NODE.pem and a key NODE.key for each agent. Of these three, what
    is None stays as an earlier enrolment set it; no directory in `allow`, or NOTHING in the others, takes that back.
    """

    ssh_config: Path | None = None
    user: str | None = None
    identity: Path | None = None
    known_hosts: Path | None = None
    directory: str = DEFAULT_DIRECTORY
    agent_port: int = DEFAULT_AGENT_PORT
    allow: tuple[str, ...] | None = None
    allow_any: bool = False
    ca_file: Path | None = None
    tls_dir: Path | None = None


@dataclass(frozen=True)
class Installed:
    """A machine whose agent of this version answers at `address` (host:port); `changed` when it was another before.

    `scheme` is what it speaks, http or https.
    """

    node_name: str
    address: str
    agent_version: str
    changed: bool = True
    scheme: str = "http"


def on_hosts(
    hosts: Iterable[str], work: Callable[[str], T], on_done: Callable[[str, T | InfoError], None] | None = None
) -> dict[str, T | InfoError]:
    """Do the work for every host, many at once: host -> what came of it, or why nothing did.

    Not one InfoError is raised; `on_done` is called as each host ends, in the order in which they do.
    """

    def try_one(host: str) -> T | InfoError:
        try:
            return work(host)
        except InfoError as error:
            return error

    results: dict[str, T | InfoError] = {}
    unique = list(dict.fromkeys(hosts))
    # Many threads are no burden here: each mostly waits for the network.
    with ThreadPoolExecutor(max_workers=min(MAX_HOSTS_AT_ONCE, max(len(unique), 1))) as pool:
        futures = {pool.submit(try_one, host): host for host in unique}
        for future in as_completed(futures):
            host = futures[future]
            results[host] = future.result()
            if on_done is not None:
                on_done(host, results[host])
    return {host: results[host] for host in unique}


class Machine:
    """One host; a context manager, connected on entry. Every call raises an InfoError that is one sentence.

    The node's name is the host as given here.
    """

    def __init__(self, host: str, options: RemoteOptions) -> None:
        self.node_name = check_node_name(host)
        for directory in options.allow or ():
            if not directory.startswith("/"):
                raise InvalidInput(
                    f"the allowed directory {directory!r} is not absolute", "allow", remedy="give its whole path"
                )
        self._options = options
        self._way = _way(host, options)
        self._connection = Connection(self._way)
        self._releases = Releases(self._connection, host, options.directory)

    def __enter__(self) -> Machine:
        self._connection.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.__exit__()

    def install(self, bundle: Bundle, service_url: str, admit: Admit) -> Installed:
        """Push, verify, switch to the new release, launch, and wait until the agent answers from here.

        `admit(node_name, address)` is called when all is there and only the agent's token is missing, which it returns.
        """
        files = self._own_files()
        self._check_allowed()
        standing = self._releases.look(make=True)
        release = self._releases.bring(bundle, standing)
        standing = replace(standing, settings=self._settings(standing, service_url, files))
        token = admit(self.node_name, f"{standing.settings['host']}:{standing.settings['port']}")
        written = dict(files.values()) | {"token": token + "\n", "settings.json": _json(standing.settings)}
        if "tls_cert" in files:
            standing = replace(standing, certificate=files["tls_cert"][1])
        return self._switch(standing, release, bundle.version, written)

    def as_it_is(self, bundle: Bundle, service_url: str) -> Installed | None:
        """The agent that answers, when `install` would change nothing but its token; None when it would change more."""
        files, standing = self._own_files(), self._releases.look()
        wanted = {name: None if text is None else _sha256(text) for name, text in files.values()}
        if (
            standing.version != bundle.version
            or standing.settings != self._settings(standing, service_url, files)
            or wanted != {name: standing.own.get(name) for name in wanted}
        ):
            return None
        return self._answering(standing, bundle.version)

    def push(self, bundle: Bundle) -> Installed:
        """Switch the agent that was enrolled here to the bundle; one that has it already is only looked at."""
        standing = self._require_enrolment()
        if standing.version == bundle.version and (there := self._answering(standing, bundle.version)):
            return there
        return self._switch(standing, self._releases.bring(bundle, standing), bundle.version, {})

    def roll_back(self) -> Installed:
        """Switch the agent to the release before, which makes the present one that for the next time."""
        standing = self._require_enrolment()
        previous = standing.links["previous"]
        version = standing.releases.get(previous or "")
        if previous is None or version is None:
            why = "there is no release before this one" if previous is None else f"the files of {previous} were changed"
            raise NotReady(f"{self.node_name} cannot go back, {why}", remedy="push the wanted files instead")
        return self._switch(standing, previous, version, {})

    def remove(self) -> bool:
        """End the agent that was enrolled here and leave nothing of it; False when there was nothing."""
        return self._releases.remove()

    def _check_allowed(self) -> None:
        """InvalidInput when a folder to allow would let a registered command run anything."""
        if not self._options.allow or self._options.allow_any:
            return
        for directory, reason in self._releases.why_not_allowed(self._options.allow).items():
            raise InvalidInput(
                f"{directory} on {self.node_name} {reason}",
                "allow",
                remedy="allow a folder that holds only what is to run, or add --allow-any",
            )

    def _require_enrolment(self) -> Standing:
        standing = self._releases.look()
        if not standing.settings:
            raise NotFound(
                f"{self.node_name} has no agent in {standing.directory}", remedy="`nodewise node add` enrols it"
            )
        return standing

    def _answering(self, standing: Standing, version: str) -> Installed | None:
        """The agent, when one of this version answers."""
        with suppress(OSError, http.client.HTTPException, ValueError):
            if _health(standing).get("agent_version") == version:
                return self._installation(standing, version, changed=False)
        return None

    def _settings(self, standing: Standing, service_url: str, files: OwnFiles) -> dict[str, Any]:
        """What the agent is to be told, over what it was told before."""
        place = standing.directory
        settings: dict[str, Any] = {
            "node_name": self.node_name,
            "host": self._way.address,
            "port": self._options.agent_port,
            "service_url": service_url,
            "token_file": str(place / "token"),
            "directory": str(place / "current"),
            "state_dir": str(place / "state"),
            **{key: str(place / name) if text is not None else "" for key, (name, text) in files.items()},
        }
        allow = {} if self._options.allow is None else {"allow": list(self._options.allow)}
        return {"allow": []} | dict(standing.settings) | settings | allow

    def _own_files(self) -> OwnFiles:
        """What this node alone is given, by the setting that names it: file name there, and content unless it goes."""
        files = {}
        authority, directory = self._options.ca_file, self._options.tls_dir
        if authority is not None:
            files["ca_file"] = ("ca.pem", _read_option_file(authority, "", "ca_file"))
        if directory is not None:
            for key, ending in (("tls_cert", "pem"), ("tls_key", "key")):
                files[key] = (f"agent.{ending}", _read_option_file(directory, f"{self.node_name}.{ending}", "tls_dir"))
        return files

    def _switch(self, standing: Standing, release: str, version: str, files: Files) -> Installed:
        current, previous = standing.links["current"], standing.links["previous"]
        links = {"current": release, "previous": previous if current == release else current}
        before = self._releases.switch(standing, links, files)
        try:
            self._await_health(standing, version)
        except InfoError as error:
            raise self._take_back(standing, before, error) from error
        self._releases.prune(standing)
        return self._installation(standing, version)

    def _take_back(self, standing: Standing, before: Mapping[str, Any], error: InfoError) -> InfoError:
        """Undo a switch; the error that tells why, and whether that went well."""
        try:
            self._releases.switch_back(standing, before)
        except InfoError as worse:
            return type(error)(f"{error}; and it could not be taken back: {worse}", error.field)
        left = "the agent before it runs again" if before["links"]["current"] else "it was stopped"
        return type(error)(f"{error}; {left}", error.field)

    def _installation(self, standing: Standing, version: str, changed: bool = True) -> Installed:
        address = f"{standing.settings['host']}:{standing.settings['port']}"
        scheme = "http" if standing.certificate is None else "https"
        return Installed(self.node_name, address, version, changed, scheme)

    def _await_health(self, standing: Standing, version: str) -> None:
        why, deadline = "it is not the one that was started", time.monotonic() + HEALTH_SECONDS
        while time.monotonic() < deadline:
            try:
                health = _health(standing)
                if (health.get("node_name"), health.get("agent_version")) == (self.node_name, version):
                    return
            except (OSError, http.client.HTTPException, ValueError) as error:
                why = str(error)
            time.sleep(0.1)
        address = self._installation(standing, version).address
        if standing.supervised:
            raise Unreachable(
                f"{address} does not answer from here as it should ({why})",
                remedy=(
                    f"see there whether the supervisor of {self.node_name}'s agent is up (`systemctl status "
                    "nodewise-agent`), and open that port"
                ),
            )
        raise Unreachable(
            f"the new agent started on {self.node_name}, but {address} does not answer from here as it should ({why})",
            remedy="open that port between this machine and the node, or choose another one",
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


def _read_option_file(place: Path, name: str, option: str) -> str | None:
    """The text of a file, None when the option takes back what was given before."""
    if place == NOTHING:
        return None
    file = place / name
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{file} cannot be read ({error})", option, remedy="make it, or leave that option out"
        ) from error


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _json(settings: Mapping[str, Any]) -> str:
    return json.dumps(settings, indent=1) + "\n"


def _health(standing: Standing) -> dict[str, Any]:
    """What the agent says of itself; OSError, ValueError or HTTPException when it says nothing that can be used."""
    tls = None if standing.certificate is None else _trusting(standing.certificate)
    connection = new_connection(standing.settings["host"], standing.settings["port"], _PROBE_SECONDS, tls)
    deadline = time.monotonic() + _PROBE_SECONDS
    try:
        connection.request("GET", "/healthz")
        answer: dict[str, Any] = json.loads(read_whole(answer_by(connection, deadline), _MOST_BYTES))
        return answer
    finally:
        connection.close()


def _trusting(certificate: str) -> ssl.SSLContext:
    """Trust in the very certificate that the node was given, whoever signed it."""
    context = ssl.create_default_context(cadata=certificate)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
