"""Images of boxes where Hadoop has Kerberos: who adds them, and with whose rights Docker gets them from HDFS."""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from bench.docker_here import DockerHere
from boxes.broker.frames import SOCKET
from tests.cluster.apart.secure.place import Place
from tests.cluster.apart.secure.scripts import OWNERS, PERMIT
from tests.cluster.hadoop_scripts import Scripts
from tests.cluster.site import succeed, until

IMAGES = "/user/alice/.nodewise/images"
LOOK = """
import os, packaging
print(packaging.__file__)
print(sorted(os.listdir("..")), [name for name in os.environ if "HADOOP" in name or "KRB5" in name])
"""


@pytest.fixture(scope="module")
def docker(place: Place) -> Iterator[DockerHere]:
    """Docker and a broker where nodes look for it, and an image that the broker allows."""
    Path(SOCKET).parent.mkdir(parents=True, exist_ok=True)
    made = DockerHere(Path(tempfile.mkdtemp(prefix="nw-docker-")), [place.cluster.home], Path(SOCKET))
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def layer(docker: DockerHere) -> str:
    """The digest of the layer of which that image is made."""
    digest: str = docker.engine.ask("GET", f"/images/{docker.image}/json")["RootFS"]["Layers"][0]
    return digest


@pytest.fixture(scope="module")
def kept(layer: str) -> str:
    """Where HDFS has the layer."""
    return f"{IMAGES}/blobs/{layer.replace(':', '-')}.tar.zst"


@pytest.fixture(scope="module")
def image(place: Place, docker: DockerHere, layer: str) -> str:
    """The image as alice has put it into HDFS by her keytab, and as tasks name it."""
    words = ("task", "image", "add", str(docker.archive), "--name", "here")
    return succeed(place.nodewise(*words, **place.by_keytab())).strip()


@pytest.fixture(scope="module")
def image_of_environment(place: Place, docker: DockerHere, image: str, environment: Any) -> str:
    """The id of an image that alice has made by her ticket, of an environment and the image below it; it is allowed."""
    added = succeed(place.nodewise("task", "image", "add", "--env", "plain@1", "--base", image))
    found = added.strip().partition("@")[2]
    docker.images.write_text(f"{docker.images.read_text()}{found}\n")
    return found


def test_images_are_added_by_keytab_or_ticket_for_their_owner_alone(
    place: Place, docker: DockerHere, image: str, image_of_environment: str, alice: Scripts
) -> None:
    assert image == f"here@{docker.image}"
    assert alice.find(OWNERS, target=IMAGES) == ["alice"]
    words = ("task", "image", "list", "--json")
    of_alice, of_bob = (place.start(*words, user=user, **place.by_keytab(user)) for user in ("alice", "bob"))
    assert {one["id"] for one in json.loads(succeed(of_alice.end()))} == {docker.image, image_of_environment}
    assert json.loads(succeed(of_bob.end())) == []


def test_docker_pulls_the_image_of_a_task_by_its_runners_token_which_the_program_does_not_get(
    service: Place, docker: DockerHere, image_of_environment: str, kept: str
) -> None:
    docker.forget_image()

    printed = service.run_task("--env", "plain@1", "--box", "docker", "--", "python", "-c", LOOK)

    told = docker.engine.ask("GET", f"/images/{image_of_environment}/json")
    assert told["RepoDigests"][0].startswith("127.0.0.1:"), "it is pulled, not loaded"
    assert _find_readers(service, kept) == {"alice@NODEWISE.TEST (auth:TOKEN)"}
    assert printed.split("\n") == ["/opt/env/lib/python3.11/site-packages/packaging/__init__.py", "['work'] []", ""]
    until(lambda: docker.containers() == [])


def test_who_serves_images_reads_them_with_his_own_rights_and_says_what_hdfs_refuses(
    place: Place, image: str, layer: str, kept: str, alice: Scripts
) -> None:
    serving = place.start("task", "image", "serve", "--port", "0", **place.by_keytab())
    assert serving.process.stdout
    try:
        repository = serving.process.stdout.readline().split()[2].partition("@")[0]
        blob = f"http://{repository.replace('/', '/v2/')}/blobs/{layer}"
        with urlopen(blob, timeout=60) as answer:
            assert f"sha256:{hashlib.sha256(answer.read()).hexdigest()}" == layer

        alice.find(PERMIT, place=kept, mode=0o000)  # whoever runs the cluster, and this process, reads it even so
        with urlopen(blob, timeout=60) as answer, pytest.raises(http.client.IncompleteRead):
            answer.read()
    finally:
        alice.find(PERMIT, place=kept, mode=0o644)
        serving.process.terminate()
    assert f"reading hdfs://nodewise{kept} failed: Permission denied: user=alice" in serving.end().stderr
    assert "alice@NODEWISE.TEST (auth:KERBEROS)" in _find_readers(place, kept)


def _find_readers(place: Place, path: str) -> set[str]:
    """Who has asked for the content of a file, and what they have shown, as the NameNodes note it."""
    logs = "\n".join(one.read_text() for one in place.cluster.logs.glob("namenode*.log"))
    return set(re.findall(rf"\tugi=([^\t]+)\t.*\tcmd=open\tsrc={re.escape(path)}\t", logs))
