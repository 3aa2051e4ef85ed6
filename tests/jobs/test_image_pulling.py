"""The registry that only reads: what it answers over HTTP, and how a box of Docker has its image through it."""

from __future__ import annotations

import hashlib
import http.client
import json
import random
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from boxes.box import BoxError
from boxes.broker.manifest import digest_of, manifest_of
from hadoop.client.filesystem import FileSystem
from hadoop.errors import HadoopError
from jobs.commands.task import task_image
from jobs.errors import JobError
from jobs.kinds.task import image_store
from jobs.kinds.task.images import pull_server
from jobs.kinds.task.images.pull_server import PulledImage, PullServer
from tests.jobs.kept_images import HOME, configuration_of, digest, played_hdfs, save

OWNERS = f"{HOME}/.nodewise"
NAME = "0123456789abcdef" * 2
LAYERS = [random.Random(seed).randbytes(3_000_000) for seed in range(2)]
CONFIGURATION = configuration_of(LAYERS)
MANIFEST = manifest_of(CONFIGURATION, [len(one) for one in LAYERS])
IMAGE = "application/vnd.oci.image"


@pytest.fixture
def hdfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileSystem:
    made = played_hdfs(tmp_path / "hdfs", monkeypatch)
    save(tmp_path / "a.tar", LAYERS)
    image_store.add(made, tmp_path / "a.tar", "a")
    return made


@pytest.fixture
def server(hdfs: FileSystem) -> Iterator[PullServer]:
    image = image_store.find(hdfs, OWNERS, digest_of(CONFIGURATION))
    assert image is not None
    with PullServer({NAME: image}) as made:
        yield made


def ask(server: PullServer, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()


def blob(content: bytes, name: str = NAME) -> str:
    return f"/v2/{name}/blobs/{digest(content)}"


def test_an_image_is_there_by_the_digest_of_its_manifest(server: PullServer) -> None:
    status, headers, content = ask(server, "/v2/")
    assert (status, headers["Docker-Distribution-API-Version"], content) == (200, "registry/2.0", b"{}")

    status, headers, content = ask(server, f"/v2/{NAME}/manifests/{digest(MANIFEST)}")
    assert (status, content) == (200, MANIFEST)
    assert headers["Content-Type"] == json.loads(content)["mediaType"] == f"{IMAGE}.manifest.v1+json"
    assert headers["Docker-Content-Digest"] == digest(content)

    named = json.loads(content)
    for part in (named["config"], *named["layers"]):
        status, headers, content = ask(server, f"/v2/{NAME}/blobs/{part['digest']}")
        assert (status, digest(content), len(content)) == (200, part["digest"], part["size"])
        assert headers["Content-Type"] == part["mediaType"]
    assert server.asked == {*map(digest, LAYERS)}


def test_a_head_is_the_answer_without_its_content(server: PullServer) -> None:
    for path in ("/v2/", f"/v2/{NAME}/manifests/{digest(MANIFEST)}", blob(CONFIGURATION), blob(LAYERS[0]), "/v2/a/b"):
        status, headers, content = ask(server, path)
        again = ask(server, path, "HEAD")
        assert (again[0], again[1]["Content-Length"], again[2]) == (status, str(len(content)), b"")
        assert again[1]["Content-Type"] == headers["Content-Type"]


def test_several_answers_come_over_one_connection(server: PullServer) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
        for method, path in (("HEAD", blob(LAYERS[0])), ("GET", blob(LAYERS[0])), ("GET", "/v2/")):
            connection.request(method, path)
            assert connection.getresponse().read() is not None
            assert connection.sock is not None, f"it stays open after {method} {path}"


def test_who_does_not_know_the_name_or_the_digest_gets_nothing(server: PullServer) -> None:
    for path, code in {
        "/": "NAME_UNKNOWN",
        "/v2/_catalog": "NAME_UNKNOWN",
        f"/v2/{NAME}/tags/list": "NAME_UNKNOWN",
        f"/v2/{NAME[:-1]}/manifests/{digest(MANIFEST)}": "NAME_UNKNOWN",
        blob(LAYERS[0], "f" * 32): "NAME_UNKNOWN",
        f"/v2/{NAME}/manifests/latest": "MANIFEST_UNKNOWN",
        f"/v2/{NAME}/manifests/{digest(CONFIGURATION)}": "MANIFEST_UNKNOWN",
        blob(b"of another image"): "BLOB_UNKNOWN",
        f"/v2/{NAME}/blobs/..%2f..%2fetc": "BLOB_UNKNOWN",
    }.items():
        status, _, content = ask(server, path)
        assert (status, json.loads(content)["errors"][0]["code"]) == (404, code), path


@pytest.mark.parametrize(("method", "status"), [("POST", 405), ("PUT", 501), ("PATCH", 501), ("DELETE", 501)])
def test_nobody_writes(server: PullServer, method: str, status: int) -> None:
    found, headers, _ = ask(server, f"/v2/{NAME}/blobs/uploads/", method)

    assert (found, headers["Connection"]) == (status, "close")


def test_a_layer_that_was_cut_off_goes_on_where_it_was(server: PullServer) -> None:
    size = len(LAYERS[1])
    for begin in (0, 1, 2_000_000, size - 1):
        status, headers, content = ask(server, blob(LAYERS[1]), Range=f"bytes={begin}-")
        assert (status, headers["Content-Range"]) == (206, f"bytes {begin}-{size - 1}/{size}")
        assert content == LAYERS[1][begin:]
    status, headers, _ = ask(server, blob(LAYERS[1]), Range=f"bytes={size}-")
    assert (status, headers["Content-Range"]) == (416, f"bytes */{size}")
    assert ask(server, blob(LAYERS[1]), Range="bytes=5-9, 20-")[2] == LAYERS[1], (
        "all of it, as other forms do not count"
    )


def test_a_handshake_of_tls_is_refused_at_once(server: PullServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00" + b"\x01" * 200)  # no line ends there
        begun = time.monotonic()
        assert connection.recv(100).startswith(b"HTTP/1.0 400 ")
    assert time.monotonic() - begun < pull_server.PATIENCE_SECONDS / 2, "it is not waited for"


def test_others_are_answered_while_one_reads_a_layer_slowly(server: PullServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as slow:
        slow.sendall(f"GET {blob(LAYERS[0])} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        assert slow.recv(10)
        assert ask(server, blob(LAYERS[1]))[2] == LAYERS[1]


def test_connections_are_bounded_in_number_and_in_time(hdfs: FileSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pull_server, "MOST_CONNECTIONS", 2)
    with PullServer({}) as server:
        silent = take_all_places(server)
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            ask(server, "/v2/")
        for one in silent:
            one.close()
        wait_for_place(server)
    monkeypatch.setattr(pull_server, "PATIENCE_SECONDS", 1.0)
    with PullServer({}) as server:
        silent = take_all_places(server)
        for one in silent:
            with suppress(ConnectionResetError):  # it was hung up on before it said a word
                assert one.recv(1) == b"", "it hangs up"
        for one in silent:
            one.close()
        wait_for_place(server)


def take_all_places(server: PullServer) -> list[socket.socket]:
    """As those do who never end what they ask."""
    silent = [socket.create_connection(("127.0.0.1", server.port), timeout=60) for _ in range(2)]
    for one in silent:
        one.sendall(b"GET /v2/")
    return silent


def wait_for_place(server: PullServer) -> None:
    """Until somebody is answered."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            assert ask(server, "/v2/")[0] == 200
            return
        except (ConnectionError, http.client.HTTPException):
            time.sleep(0.05)
    pytest.fail("nobody is answered any more")


def await_those_who_leave(server: PullServer) -> None:
    """Until those who were hung up on have given their places back, of which each one's thread takes care."""
    places, deadline = server._server._places, time.monotonic() + 60
    while places and places._value < pull_server.MOST_CONNECTIONS - pull_server.MOST_STRANGERS - 1:
        assert time.monotonic() < deadline, "they keep their places"
        time.sleep(0.02)


def test_those_who_ask_for_nothing_take_no_place_from_docker(server: PullServer) -> None:
    with ExitStack() as stack:
        pulling = stack.enter_context(closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)))
        pulling.request("GET", f"/v2/{NAME}/manifests/{digest(MANIFEST)}")
        assert pulling.getresponse().read() == MANIFEST
        for _ in range(2 * pull_server.MOST_CONNECTIONS):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))

        pulling.request("GET", blob(LAYERS[0]))
        assert pulling.getresponse().read() == LAYERS[0], "who has named a repository is hung up on for nobody"
        wait_for_place(server)  # by then all of them have come
        await_those_who_leave(server)
        assert ask(server, blob(LAYERS[1]))[2] == LAYERS[1]


@pytest.mark.parametrize("is_cut", [True, False])
def test_of_a_damaged_layer_nobody_gets_all_bytes_and_it_is_named(
    is_cut: bool, server: PullServer, hdfs: FileSystem
) -> None:
    place = f"{OWNERS}/images/blobs/{digest(LAYERS[0]).replace(':', '-')}.tar.zst"
    content = hdfs.read(place)
    hdfs.write(place, content[: len(content) // 2] + (b"" if is_cut else b"x" + content[len(content) // 2 + 1 :]))

    with pytest.raises(http.client.IncompleteRead):
        ask(server, blob(LAYERS[0]))

    status, _, told = ask(server, blob(LAYERS[0]))
    assert (status, json.loads(told)["errors"][0]["code"]) == (404, "BLOB_UNKNOWN"), "so that Docker ends"
    assert f"{place} is damaged" in server.damaged[digest(LAYERS[0])]
    assert ask(server, blob(LAYERS[1]))[2] == LAYERS[1]


def test_a_layer_that_hdfs_brings_a_part_of_can_be_asked_for_again(hdfs: FileSystem) -> None:
    tries: list[int] = []

    def read(_: str, offset: int) -> Iterator[bytes]:
        tries.append(offset)
        yield LAYERS[0][offset : offset + 1_000_000]
        if len(tries) == 1:
            raise HadoopError("the DataNode is away")
        yield LAYERS[0][offset + 1_000_000 :]

    configuration, said = configuration_of(LAYERS[:1]), list[str]()
    with PullServer({NAME: PulledImage(configuration, [len(LAYERS[0])], read)}, say=said.append) as server:
        with pytest.raises(http.client.IncompleteRead) as cut:
            ask(server, blob(LAYERS[0]))
        got = cut.value.partial
        got += ask(server, blob(LAYERS[0]), Range=f"bytes={len(got)}-")[2]
    assert (got, tries, server.damaged) == (LAYERS[0], [0, 1_000_000], {})
    assert said == ["the DataNode is away"]


def test_an_image_is_served_under_a_name_of_its_own_while_the_block_runs(hdfs: FileSystem) -> None:
    heard: list[str] = []
    names = set()
    for _ in range(2):
        serving = image_store.serve(hdfs, OWNERS, digest_of(CONFIGURATION), heard.append)
        assert serving is not None
        with serving as place:
            names.add(place.name)
            assert place.configuration.encode() == CONFIGURATION
            url = f"/v2/{place.name}/blobs/{digest(LAYERS[1])}"
            with closing(http.client.HTTPConnection("127.0.0.1", place.port, timeout=60)) as connection:
                connection.request("GET", url)
                assert hashlib.sha256(connection.getresponse().read()).hexdigest() in digest(LAYERS[1])
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", place.port), timeout=60)
    assert len(names) == 2
    assert heard == ["Docker has fetched 1 of 2 layers; it had the others"] * 2


def test_what_fails_for_a_damaged_layer_says_so(hdfs: FileSystem) -> None:
    place = f"{OWNERS}/images/blobs/{digest(LAYERS[0]).replace(':', '-')}.tar.zst"
    hdfs.write(place, hdfs.read(place)[:-100_000])
    serving = image_store.serve(hdfs, OWNERS, digest_of(CONFIGURATION), print)
    assert serving is not None

    with pytest.raises(BoxError) as told, serving as served:
        with closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)) as connection:
            connection.request("GET", f"/v2/{served.name}/blobs/{digest(LAYERS[0])}")
            with pytest.raises(http.client.IncompleteRead):
                connection.getresponse().read()
        raise ConnectionAbortedError("Docker says: unexpected EOF")
    assert f"{place} is damaged" in told.value.message
    assert "nodewise task image rm" in told.value.remedy


def test_what_fails_for_a_layer_that_hdfs_does_not_bring_says_so(
    hdfs: FileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> Iterator[bytes]:
        yield LAYERS[0][:100]
        raise HadoopError("reading it: the file is not there")

    gone = PulledImage(CONFIGURATION, [len(one) for one in LAYERS], read)
    monkeypatch.setattr(image_store, "find", lambda *_: gone)
    serving = image_store.serve(hdfs, OWNERS, digest_of(CONFIGURATION), print)
    assert serving is not None

    with pytest.raises(OSError, match="reading it: the file is not there"), serving as served:
        with closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)) as connection:
            connection.request("GET", f"/v2/{served.name}/blobs/{digest(LAYERS[0])}")
            with pytest.raises(http.client.IncompleteRead):
                connection.getresponse().read()
        raise ConnectionAbortedError("Docker says: unexpected EOF")


def test_what_fails_as_the_image_was_taken_out_says_so(hdfs: FileSystem) -> None:
    image = digest_of(CONFIGURATION)
    serving = image_store.serve(hdfs, OWNERS, image, print)
    assert serving is not None

    said = f"^the image {image} was taken out of HDFS meanwhile: "
    with pytest.raises(BoxError, match=said) as told, serving as place:
        image_store.remove(hdfs, image)
        with closing(http.client.HTTPConnection("127.0.0.1", place.port, timeout=60)) as connection:
            connection.request("GET", f"/v2/{place.name}/blobs/{digest(LAYERS[0])}")
            with pytest.raises(http.client.IncompleteRead):
                connection.getresponse().read()
        raise ConnectionAbortedError("Docker says: unexpected EOF")
    assert "nodewise task image add" in told.value.remedy


def test_an_operator_serves_all_images_until_ctrl_c(
    hdfs: FileSystem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hdfs.write(f"{OWNERS}/images/{'1' * 64}.json", b'{"id": "sha256:11", "name": "an archive", "size_bytes": 1}')
    monkeypatch.setattr(task_image, "session", lambda *_: SimpleNamespace(filesystem=hdfs))
    said: list[str] = []

    class Pressed(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            """Pull what was printed, and then Ctrl-C."""
            found = re.fullmatch(r"docker pull 127\.0\.0\.1:(\d+)/([0-9a-f]{12})@(\S+)  # a", said[0])
            port, name, manifest = found.groups() if found else pytest.fail(said[0])
            with closing(http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)) as connection:
                connection.request("GET", f"/v2/{name}/manifests/{manifest}")
                said.append(digest(connection.getresponse().read()))
            raise KeyboardInterrupt

    monkeypatch.setattr(task_image, "threading", SimpleNamespace(Event=Pressed))
    monkeypatch.setattr(click, "echo", said.append)
    task_image.image.main(["serve", "--port", "0"], obj=tmp_path, standalone_mode=False)

    assert said[1] == digest(MANIFEST)


def test_a_port_that_is_taken_is_named(
    hdfs: FileSystem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: PullServer
) -> None:
    monkeypatch.setattr(task_image, "session", lambda *_: SimpleNamespace(filesystem=hdfs))

    with pytest.raises(JobError, match=rf"port {server.port} of 127\.0\.0\.1 cannot be had: Address already in use"):
        task_image.image.main(["serve", "--port", str(server.port)], obj=tmp_path, standalone_mode=False)


def test_layers_are_served_side_by_side(hdfs: FileSystem) -> None:
    both = threading.Barrier(2, timeout=60)

    def read(name: str, _: int) -> Iterator[bytes]:
        both.wait()  # breaks if one comes after the other
        yield next(one for one in LAYERS if digest(one) == name)

    got: list[bytes] = []
    sizes = [len(one) for one in LAYERS]
    with PullServer({NAME: PulledImage(CONFIGURATION, sizes, read)}) as server:
        asking = [threading.Thread(target=lambda one=one: got.append(ask(server, blob(one))[2])) for one in LAYERS]
        for one in asking:
            one.start()
        for one in asking:
            one.join(90)
    assert sorted(got) == sorted(LAYERS)
