"""Images that alice puts into HDFS, and who reads them there."""

from __future__ import annotations

import re

from bench.docker_here import DockerHere
from tests.cluster.apart.secure.place import Place
from tests.cluster.site import succeed

IMAGES = "/user/alice/.nodewise/images"


def add_image(place: Place, docker: DockerHere) -> str:
    """The image as alice has put it into HDFS by her keytab, and as tasks name it."""
    words = ("task", "image", "add", str(docker.archive), "--name", "here")
    return succeed(place.nodewise(*words, **place.by_keytab())).strip()


def add_image_of_environment(place: Place, docker: DockerHere, image: str) -> str:
    """The id of an image that alice has made by her ticket, of `plain@1` and the image below it; it is allowed."""
    added = succeed(place.nodewise("task", "image", "add", "--env", "plain@1", "--base", image))
    found = added.strip().partition("@")[2]
    docker.images.write_text(f"{docker.images.read_text()}{found}\n")
    return found


def find_layer(docker: DockerHere) -> str:
    """The digest of the layer of which the image is made."""
    digest: str = docker.engine.ask("GET", f"/images/{docker.image}/json")["RootFS"]["Layers"][0]
    return digest


def path_of(layer: str) -> str:
    """Where HDFS has a layer."""
    return f"{IMAGES}/blobs/{layer.replace(':', '-')}.tar.zst"


def find_readers(place: Place, path: str) -> set[str]:
    """Who has asked for the content of a file, and what they have shown, as the NameNodes note it."""
    logs = "\n".join(one.read_text() for one in place.cluster.logs.glob("namenode*.log"))
    return set(re.findall(rf"\tugi=([^\t]+)\t.*\tcmd=open\tsrc={re.escape(path)}\t", logs))
