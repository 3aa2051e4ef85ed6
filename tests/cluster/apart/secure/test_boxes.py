"""Images of boxes where Hadoop has Kerberos: who adds them, and with whose rights Docker gets them from HDFS."""

from __future__ import annotations

import hashlib
import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import pytest

from bench.docker_here import DockerHere
from tests.cluster.apart.secure.images import (
    IMAGES,
    add_image,
    add_image_of_environment,
    find_layer,
    find_readers,
    path_of,
)
from tests.cluster.apart.secure.place import Place
from tests.cluster.apart.secure.scripts import OWNERS, PERMIT
from tests.cluster.hadoop_scripts import Scripts
from tests.cluster.node_docker import docker_of
from tests.cluster.site import succeed, until

LOOK = """
import os, packaging
print(packaging.__file__)
print(sorted(os.listdir("..")), [name for name in os.environ if "HADOOP" in name or "KRB5" in name])
"""


@pytest.fixture(scope="module")
def docker(place: Place) -> Iterator[DockerHere]:
    """Docker and a broker where nodes look for it, and an image that the broker allows."""
    with docker_of(place.cluster) as made:
        yield made


@pytest.fixture(scope="module")
def layer(docker: DockerHere) -> str:
    """The digest of the layer of which that image is made."""
    return find_layer(docker)


@pytest.fixture(scope="module")
def kept(layer: str) -> str:
    """Where HDFS has the layer."""
    return path_of(layer)


@pytest.fixture(scope="module")
def image(place: Place, docker: DockerHere) -> str:
    """The image in HDFS, as tasks name it."""
    return add_image(place, docker)


@pytest.fixture(scope="module")
def image_of_environment(place: Place, docker: DockerHere, image: str, environment: Any) -> str:
    """The id of an image of an environment, which is allowed."""
    return add_image_of_environment(place, docker, image)


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
    assert find_readers(service, kept) == {"alice@NODEWISE.TEST (auth:TOKEN)"}
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
    assert "alice@NODEWISE.TEST (auth:KERBEROS)" in find_readers(place, kept)
