"""Archives of tasks: they come and go piece by piece, so that none is ever whole in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flask import Response, current_app, g, request

from infosvc.access.body_limit import BodyLimit
from infosvc.access.proxies import peer_of
from infosvc.access.roles import SEES_TASKS, needs, reads_its_body
from infosvc.core.service import components_of
from infosvc.http.api.call_group import CallGroup
from infosvc.http.api.exchange import write
from infosvc.http.api.restx import File, Namespace, Resource
from infosvc.http.openapi.document import ARCHIVE
from infosvc.http.openapi.schemas import answer_model
from infosvc.tasks.archives import PIECE_BYTES, Archives, Sink
from infosvc.wire.records import Role
from infosvc.wire.task_spec import SHA256
from infosvc.wire.tasks import TaskFiles

ns = Namespace("files", "Archives: the files of tasks", path="/tasks/files")
calls = CallGroup("files", ns)

SHA = {"pattern": SHA256.pattern, "x-example": "0f" * 32}
TAR = {"_in": "body", "required": True, "schema": {"type": "string", "format": "binary"}}

files_said = answer_model(ns, TaskFiles)


@ns.route("/<sha256>")
@ns.param("sha256", "SHA-256 of the archive, 64 hexadecimal digits in lower case", **SHA)
class Files(Resource):
    """One of them."""

    @ns.produces([ARCHIVE, "application/json"])
    @ns.response(200, "the archive", File)
    @ns.response(404, "no archive has this SHA-256")
    @needs(*SEES_TASKS)
    def get(self, sha256: str) -> Any:
        """Fetch an archive, or ask with HEAD whether it is here.

        Whoever knows the SHA-256 of an archive may have it.
        """
        archives = _archives()
        size = archives.size(sha256)
        parts = () if request.method == "HEAD" else _pieces(archives.path(sha256))
        answer = Response(parts, mimetype=ARCHIVE)
        answer.content_length = size
        return answer

    @ns.param("archive", "a tar archive", **TAR)
    @ns.response(200, "it was here already", files_said)
    @ns.response(201, "kept", files_said)
    @ns.response(400, "the body broke off")
    @ns.response(409, "there is no room for it")
    @ns.response(413, "it is larger than the service takes")
    @ns.response(422, "its SHA-256 is another one")
    @reads_its_body
    @needs(Role.USER)
    def put(self, sha256: str) -> Any:
        """Send the archive of a task, before the task that names it.

        It is kept as long as a task names it, and some days more.
        """
        length = request.content_length or 0
        limit: BodyLimit = components_of(current_app).bodies
        who, address, source = g.caller.token_id, peer_of(request.environ), request.environ["wsgi.input"].read

        def bring(take: Sink) -> None:
            limit.pour(who, address, length, source, take)

        is_new = _archives().keep(sha256, length, bring)
        write(lambda _transaction: is_new, json.dumps({"bytes": length}))
        return TaskFiles(sha256, length).to_json(), 201 if is_new else 200


def _archives() -> Archives:
    archives: Archives = components_of(current_app).archives
    return archives


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece
