"""The dashboard's files, which hold no data and so are shown to anybody; and what browsers may do with any page."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from flask import Response, request
from werkzeug.exceptions import NotFound

from infosvc.http.api.call_group import CallGroup, Route

WEB = Path(__file__).resolve().parents[2] / "web"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
CSP = "Content-Security-Policy"
# Of every answer: no browser guesses what it is, and no page of another site embeds it.
GUARDS = (("X-Content-Type-Options", "nosniff"), ("Cross-Origin-Resource-Policy", "same-origin"))

# Our own pages hold neither script nor style, and load both from here alone.
STRICT = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# Pages that are one file each, as /explain is: with styles of their own, and no script at all.
PLAIN = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_SWAGGER_UI = "api.doc"
_SCRIPT = re.compile(r"<script[^>]*>(.*?)</script>", re.DOTALL)


class _File(NamedTuple):
    content: bytes
    kind: str
    etag: str


def _show(filename: str = "index.html") -> Response:
    return _answer(read(WEB).get(filename))


calls = CallGroup(
    "pages", routes=(Route("/", "index", _show, None), Route("/web/<path:filename>", "file", _show, None))
)


@cache
def read(folder: Path) -> dict[str, _File]:
    """All files of the kinds that browsers load, by their path below the folder; nothing else can be asked for."""
    return {
        path.relative_to(folder).as_posix(): _file(path)
        for path in sorted(folder.rglob("*"))
        if path.suffix in TYPES and path.is_file()
    }


def _file(path: Path) -> _File:
    content = path.read_bytes()
    return _File(content, TYPES[path.suffix], hashlib.sha256(content).hexdigest()[:32])


def _answer(file: _File | None) -> Response:
    if file is None:
        raise NotFound
    answer = Response(file.content, content_type=file.kind)
    answer.set_etag(file.etag)
    answer.headers["Cache-Control"] = "no-cache"
    answer.headers["Referrer-Policy"] = "no-referrer"
    answer.headers[CSP] = STRICT
    answer.make_conditional(request)
    return answer


def protect(response: Response) -> Response:
    """Let no browser guess what an answer is, nor let a page do more than it must; what a view has set stays."""
    for name, text in GUARDS:
        response.headers.setdefault(name, text)
    if response.mimetype == "text/html":
        response.headers.setdefault("Referrer-Policy", "no-referrer")
        if CSP not in response.headers:
            swagger = request.endpoint == _SWAGGER_UI
            response.headers[CSP] = for_swagger(response.get_data(as_text=True)) if swagger else PLAIN
    return response


def for_swagger(page: str) -> str:
    """What Swagger UI needs: it styles by script, and the one script within its page is known by its hash."""
    inline = (text for text in _SCRIPT.findall(page) if text.strip())
    return (
        f"default-src 'none'; script-src 'self'{_hashes(inline)}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )


def _hashes(scripts: Iterable[str]) -> str:
    digests = (hashlib.sha256(text.encode()).digest() for text in scripts)
    return "".join(f" 'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
