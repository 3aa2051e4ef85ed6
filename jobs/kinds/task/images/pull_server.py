"""Serves images to Docker on this machine by the calls of a registry that only reads; it keeps nothing of its own.

GET or HEAD /v2/                           there is such a registry
GET or HEAD /v2/NAME/manifests/DIGEST      what an image is made of
GET or HEAD /v2/NAME/blobs/DIGEST          its configuration or a layer, unpacked; the latter also from a byte on

https://github.com/opencontainers/distribution-spec/blob/v1.0.1/spec.md#pull
"""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Self, cast

from boxes.broker.manifest import CONFIGURATION, LAYER, MANIFEST, digest_of, layers_of, manifest_of
from hadoop.errors import HadoopError
from infosvc.wire.http_server import Handler, Reply, Server
from jobs.kinds.task.images.layer_blobs import Damaged

PATIENCE_SECONDS = 60.0
"""How long a request may take to come, and an answer may stop."""
MOST_CONNECTIONS = 32
"""Docker asks for three layers at a time, unless its operator has it ask for more."""
MOST_STRANGERS = 16
"""Connections of those who have named no repository yet: others of this machine take no more places from Docker."""
POLL_SECONDS = 0.05
_HANDSHAKE = b"\x16"
"""How TLS begins, which Docker tries first."""
_CALL = re.compile(r"/v2/(?P<name>.+)/(?P<what>manifests|blobs)/(?P<digest>[^/]+)")
_FROM = re.compile(r"bytes=([0-9]{1,18})-")
_VERSION = {"Docker-Distribution-API-Version": "registry/2.0"}


@dataclass(frozen=True)
class PulledImage:
    """What is served of an image; `read` brings the bytes of a layer, by its digest, from a byte on."""

    configuration: bytes
    sizes: Sequence[int]
    read: Callable[[str, int], Iterator[bytes]]

    @property
    def manifest(self) -> bytes:
        """By whose digest it is pulled."""
        return manifest_of(self.configuration, self.sizes)

    @property
    def layers(self) -> Mapping[str, int]:
        """The size of each layer by its digest."""
        return dict(zip(layers_of(self.configuration), self.sizes, strict=True))


class PullServer:
    """Serves images by the names of their repositories, on a port of 127.0.0.1, until the block ends.

    damaged    what was found out of a layer, by its digest
    failed     what HDFS said of a layer that it did not bring, by its digest
    asked      the digests of the layers that somebody has asked for
    say        hears each time why a layer did not go out whole, of which its reader learns nothing
    """

    def __init__(
        self, images: Mapping[str, PulledImage], port: int = 0, say: Callable[[str], None] = lambda _: None
    ) -> None:
        self.images = dict(images)
        self.say = say
        self.damaged: dict[str, str] = {}
        self.failed: dict[str, str] = {}
        self.asked: set[str] = set()
        self._server = _Server(self, port)
        self.port = self._server.server_port

    def __enter__(self) -> Self:
        serve = self._server.serve_forever
        threading.Thread(target=serve, args=(POLL_SECONDS,), name="pull server", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(Server):
    def __init__(self, owner: PullServer, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler, PATIENCE_SECONDS, MOST_CONNECTIONS, None, MOST_STRANGERS)
        self.owner = owner


class _Handler(Handler):
    def handle(self) -> None:
        """Answer requests; to a handshake of TLS, say at once that there is none, as it has no end of a line."""
        self.connection.settimeout(self.server.patience)
        if self.connection.recv(1, socket.MSG_PEEK) == _HANDSHAKE:
            self.connection.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n")
            return
        super().handle()

    @property
    def _owner(self) -> PullServer:
        return cast("_Server", self.server).owner

    def do_HEAD(self) -> None:  # noqa: N802 as http.server has it
        self.get()

    def get(self) -> None:
        """Answer a GET or a HEAD."""
        path = self.path.partition("?")[0]
        if path in ("/v2", "/v2/"):
            self._send(b"{}", "application/json", {})
            return
        call = _CALL.fullmatch(path)
        image = self._owner.images.get(call["name"]) if call else None
        if image:
            self.server.trust(self.connection)
        if call is None or image is None:
            self._deny(HTTPStatus.NOT_FOUND, "NAME_UNKNOWN", "there is no such repository")
        elif call["what"] == "manifests":
            self._send_manifest(image, call["digest"])
        else:
            self._send_blob(image, call["digest"])

    def _send_manifest(self, image: PulledImage, digest: str) -> None:
        if digest == digest_of(image.manifest):
            self._send(image.manifest, MANIFEST, {"Docker-Content-Digest": digest})
        else:
            self._deny(HTTPStatus.NOT_FOUND, "MANIFEST_UNKNOWN", "images are known by their digests, not by tags")

    def _send_blob(self, image: PulledImage, digest: str) -> None:
        if digest == digest_of(image.configuration):
            self._send(image.configuration, CONFIGURATION, {"Docker-Content-Digest": digest})
        elif digest not in image.layers:
            self._deny(HTTPStatus.NOT_FOUND, "BLOB_UNKNOWN", "the image has no such part")
        elif digest in self._owner.damaged:  # so that Docker, which tries three times, is not sent it again
            self._deny(HTTPStatus.NOT_FOUND, "BLOB_UNKNOWN", self._owner.damaged[digest])
        else:
            self._send_layer(image, digest)

    def _send_layer(self, image: PulledImage, digest: str) -> None:
        size, asked = image.layers[digest], _FROM.fullmatch(self.headers.get("Range", ""))
        offset = int(asked[1]) if asked else 0
        headers = {**_VERSION, "Docker-Content-Digest": digest, "Accept-Ranges": "bytes"}
        if offset and offset >= size:
            headers["Content-Range"] = f"bytes */{size}"
            self.send_head(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, 0, "", headers)
            return
        if asked:
            headers["Content-Range"] = f"bytes {offset}-{max(0, size - 1)}/{size}"
        self.send_head(HTTPStatus.PARTIAL_CONTENT if asked else HTTPStatus.OK, size - offset, LAYER, headers)
        if self.command == "HEAD":
            return
        self._owner.asked.add(digest)
        try:
            self._send_pieces(image.read(digest, offset), size - offset)
        except Damaged as error:
            self._owner.damaged[digest] = str(error)
            self._cut_off(error)  # with too few bytes: nobody takes that for the layer
        except HadoopError as error:
            self._owner.failed[digest] = str(error)
            self._cut_off(error)  # Docker asks again, for what it lacks

    def _cut_off(self, why: Exception) -> None:
        self._owner.say(str(why))
        self.close_connection = True

    def _send_pieces(self, pieces: Iterator[bytes], size: int) -> None:
        for piece in pieces:
            if len(piece) > size:
                raise Damaged("a layer has more bytes than it had")
            size -= len(piece)
            self.wfile.write(piece)
        if size:
            raise Damaged("a layer has fewer bytes than it had")

    def _send(self, content: bytes, kind: str, headers: Mapping[str, str]) -> None:
        self.send_head(HTTPStatus.OK, len(content), kind, {**_VERSION, **headers})
        if self.command != "HEAD":
            self.wfile.write(content)

    def post(self) -> None:
        """Refuse it; other methods, by which registries are written, http.server knows none of."""
        self.close_connection = True  # a body may follow, which nobody reads
        self._deny(HTTPStatus.METHOD_NOT_ALLOWED, "UNSUPPORTED", "nothing is written here", {"Allow": "GET, HEAD"})

    def _deny(self, status: HTTPStatus, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        content = json.dumps({"errors": [{"code": code, "message": message}]}).encode()
        reply = Reply(status, content, headers={**_VERSION, **(headers or {})})
        if self.command == "HEAD":
            self.send_head(reply.status, len(reply.content), reply.kind, reply.headers)
        else:
            self.reply(reply)
