"""A cluster, the packages in every form, a Docker for each node, and a package index: all in a network of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.docker_here import DockerHere
from bench.environments import content, image
from bench.environments.content import Content
from bench.info.errors import BenchError
from bench.info.processes import ROOT
from bench.programs import TOLD, output
from bench.stage import NODEWISE, cluster_of, until
from hadoop.local import daemons, health, ports
from hadoop.local.lifecycle import Cluster

ENV = "bench@1"
CODE, SYSTEM, ARCHIVE = "/bench/code.zip", "/bench/system.tar.gz", "/bench/image.tar.gz"
INDEX_PORT, REGISTRY_PORT, IMAGES_PORT = 20_080, 20_050, 20_060
"""In the network of the bench, where nobody else has them."""
HOST = "127.0.0.1"
LOADED, PULLED = "bench/env:1", f"{HOST}:{REGISTRY_PORT}/env:1"
"""The image, by the name that its archive gives it, and by that of the registry."""
REGISTRY, SERVED = "docker-registry", "bench"
START_SECONDS = 240.0
_EXPIRY = "<name>yarn.am.liveness-monitor.expiry-interval-ms</name><value>{}</value>"
_OUR_EXPIRY, _YARNS_EXPIRY = _EXPIRY.format(60_000), _EXPIRY.format(600_000)
"""Within which an application has to begin, its files fetched and unpacked: a minute here, ten by default."""

Say = Callable[[str], None]


class Submitter:
    """The process that speaks to HDFS and YARN."""

    def __init__(self, cluster: Cluster, log: Path) -> None:
        self._log = log
        where = [str(cluster.conf_dir), str(cluster.jars), cluster.user]
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bench.environments.submitter", *where],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=ROOT,
            )

    def ask(self, call: str, *words: Any) -> Any:
        """What a call answers; BenchError when it fails."""
        if not (self._process.stdin and self._process.stdout):
            raise BenchError("the submitter has no pipes")
        try:
            print(json.dumps([call, *words]), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            answer = ""
        else:
            answer = self._process.stdout.readline()
        if not answer:
            raise BenchError(f"{call} failed: {self._log.read_text()[-TOLD:]}")
        return json.loads(answer)

    def end(self) -> None:
        """Let it go."""
        self._process.kill()
        self._process.communicate()


@dataclass(frozen=True)
class Scene:
    """`tree` are the packages as a folder, `parts` and `archive` in HDFS, `sizes` bytes to fetch by way.

    `served` is the image as whoever serves it out of HDFS names it.
    """

    cluster: Cluster
    submitter: Submitter
    content: Content
    scratch: Path
    tree: Path
    lock: Path
    parts: Mapping[str, str]
    archive: str
    dockers: Mapping[str, DockerHere]
    sizes: Mapping[str, int]
    served: str = ""

    @property
    def nodes(self) -> Sequence[str]:
        """Their names."""
        return self.cluster.nodes

    @property
    def senders(self) -> list[list[int]]:
        """The ports of each machine that sends packages: each node's DataNode, the index, and the registry."""
        count = range(1, len(self.nodes) + 1)
        return [[ports.DATANODE + one, ports.DATANODE_HTTP + one] for one in count] + [[INDEX_PORT], [REGISTRY_PORT]]

    def folder(self, node: str) -> Path:
        """Of what a way keeps on a node."""
        return self.scratch / node


def has_registry() -> bool:
    """Whether Debian's registry of images is here."""
    return shutil.which(REGISTRY) is not None


@contextmanager
def scene(found: Content, files: Sequence[Path], nodes: int, say: Say) -> Iterator[Scene]:
    """The scene of some packages until the end of the block; it needs root, and a network of its own."""
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nw-env-")))
        index = scratch / "index"
        index.mkdir()
        content.lay_index([] if found.debian else files, index)
        words = [str(INDEX_PORT), "--bind", HOST, "--directory", str(index), "--protocol", "HTTP/1.1"]
        stack.enter_context(_running([sys.executable, "-m", "http.server", *words], scratch / "index.log"))
        lock = scratch / "lock.txt"
        content.write_lock(found, files, lock)
        cluster = stack.enter_context(cluster_of(None, nodes))
        _wait_as_yarn_does(cluster)
        submitter = Submitter(cluster, scratch / "submitter.log")
        stack.callback(submitter.end)
        dockers = {node: stack.enter_context(_docker(cluster)) for node in cluster.nodes}
        if has_registry():
            stack.enter_context(_registry(scratch))
        for node in cluster.nodes:
            (scratch / node).mkdir()
        made = _fill(cluster, submitter, found, scratch, lock, files, dockers, say)
        yield replace(made, served=stack.enter_context(_image_server(cluster, scratch)))


def _wait_as_yarn_does(cluster: Cluster) -> None:
    """Let programs begin as late as they may by YARN's default, for the way that takes longest."""
    settings = cluster.conf_dir / "yarn-site.xml"
    text = settings.read_text()
    if _OUR_EXPIRY not in text:
        raise BenchError(f"{settings} does not say {_OUR_EXPIRY}")
    settings.write_text(text.replace(_OUR_EXPIRY, _YARNS_EXPIRY))
    manager = daemons.Daemon(cluster, "resourcemanager")
    before = daemons.find_running(cluster)[manager]
    before.kill()
    before.wait()
    daemons.start(manager)
    until(lambda: not health.find_missing(cluster), START_SECONDS, "the ResourceManager is back")


def _fill(
    cluster: Cluster,
    submitter: Submitter,
    found: Content,
    scratch: Path,
    lock: Path,
    files: Sequence[Path],
    dockers: Mapping[str, DockerHere],
    say: Say,
) -> Scene:
    """Make the packages' forms, and put them where nodes fetch them."""
    tree, archive = scratch / "tree", scratch / "image.tar.gz"
    submitter.ask("put_code", CODE)
    if found.debian:
        submitter.ask("keep_packages", [str(one) for one in files])
    say("making the environment")
    made = make(cluster, lock)
    parts = submitter.ask("find_parts", ENV)
    submitter.ask("download", *parts.values(), str(scratch / "part.sqfs"))
    output(["unsquashfs", "-quiet", "-no-progress", "-dest", str(tree), str(scratch / "part.sqfs")], "unsquashfs")
    say("publishing it")
    packed, packed_bytes = _publish_system(submitter, tree) if found.debian else _publish(cluster, tree)
    say("making the image")
    first = dockers[cluster.nodes[0]]
    image.build(first.docker, tree, found.at, scratch, LOADED)
    image.save(first.docker, LOADED, archive)
    submitter.ask("upload", str(archive), ARCHIVE)
    image.docker(first.docker, "save", "--output", str(scratch / "image.tar"), LOADED)
    added = _nodewise(cluster, "task", "image", "add", str(scratch / "image.tar"), "--name", SERVED)
    if has_registry():
        image.docker(first.docker, "tag", LOADED, PULLED)
        image.docker(first.docker, "push", "--quiet", PULLED)
    image.docker(first.docker, "image", "prune", "--all", "--force")
    sizes = {
        "ours": sum(one["size_bytes"] for one in made["parts"]),
        "tar.gz": packed_bytes,
        "docker load": archive.stat().st_size,
        "docker pull from HDFS": added["size_bytes"],
        "docker pull": sum(one.stat().st_size for one in (scratch / "registry").rglob("blobs/sha256/*/*/data")),
    }
    if not found.debian:
        sizes["uv"] = sum(one.stat().st_size for one in files)
    return Scene(cluster, submitter, found, scratch, tree, lock, parts, packed, dockers, sizes)


def _publish(cluster: Cluster, tree: Path) -> tuple[str, int]:
    """The archive in HDFS of packages of Python, and its bytes."""
    published = _nodewise(cluster, "env", "publish", "--python", str(tree))
    return published["path"], published["packed_bytes"]


def _publish_system(submitter: Submitter, tree: Path) -> tuple[str, int]:
    """The same of a system, which `env publish` does not take: as tar and gzip make it by themselves.

    One link of Debian's is left out, which leads to the folder that it is in: YARN looks through what it has unpacked
    before it starts a program, and ends the container there.
    """
    archive = tree.with_name("system.tar.gz")
    output(["tar", "-C", str(tree), "--exclude=./usr/bin/X11", "-czf", str(archive), "."], "tar")
    submitter.ask("upload", str(archive), SYSTEM)
    return SYSTEM, archive.stat().st_size


def make(cluster: Cluster, lock: Path) -> Mapping[str, Any]:
    """What `env make` answers that makes the environment of a lock."""
    name, _, version = ENV.partition("@")
    return _nodewise(cluster, "env", "make", name, "--version", version, "--lock", str(lock))


def _nodewise(cluster: Cluster, *words: str) -> Mapping[str, Any]:
    """What a command answers, with the bench's package index in place of others."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    environment = kept | {"PIP_INDEX_URL": index_url(), "UV_DEFAULT_INDEX": index_url()}
    argv = [*NODEWISE, "--home", str(cluster.home), *words, "--json"]
    return dict(json.loads(output(argv, f"nodewise {words[0]} {words[1]}", environment)))


def index_url() -> str:
    """The package index."""
    return f"http://{HOST}:{INDEX_PORT}/simple"


@contextmanager
def _docker(cluster: Cluster) -> Iterator[DockerHere]:
    made = DockerHere(Path(tempfile.mkdtemp(prefix="nw-docker-")), [cluster.home])  # short: it holds sockets
    made.start_docker()
    try:
        yield made
    finally:
        made.stop_docker()


@contextmanager
def _registry(scratch: Path) -> Iterator[None]:
    settings = {
        "version": "0.1",
        "log": {"level": "error"},
        "storage": {"filesystem": {"rootdirectory": str(scratch / "registry")}},
        "http": {"addr": f"{HOST}:{REGISTRY_PORT}"},
    }
    file = scratch / "registry.json"  # it reads YAML, of which JSON is a part
    file.write_text(json.dumps(settings))
    with _running([REGISTRY, "serve", str(file)], scratch / "registry.log"):
        until(lambda: ports.is_listening((HOST, REGISTRY_PORT)), START_SECONDS, "the registry listens")
        yield


@contextmanager
def _image_server(cluster: Cluster, scratch: Path) -> Iterator[str]:
    """What serves images out of HDFS, as a task's runner does on its node; the image as Docker pulls it."""
    log = scratch / "images.log"
    words = ["task", "image", "serve", "--port", str(IMAGES_PORT)]
    with _running([*NODEWISE, "--home", str(cluster.home), *words], log):
        until(lambda: f"# {SERVED}\n" in log.read_text(), START_SECONDS, "images are served")
        yield log.read_text().partition("docker pull ")[2].split()[0]


@contextmanager
def _running(argv: Sequence[str], log: Path) -> Iterator[None]:
    with log.open("wb") as said, subprocess.Popen(argv, stdout=said, stderr=said) as process:
        try:
            yield
        finally:
            process.terminate()
