"""A receiver of messages as others run one: over https with a certificate of its own, and it may refuse or redirect."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from infosvc.posting import sending
from tests.infosvc.conftest import PATIENCE_SECONDS
from tests.infosvc.test_client import Authority


class Receiver:
    """What came: `got` are the messages that were answered with 200, `calls` all with their headers and bytes.

    The next calls are answered with what is in `answers`, one after the other, then with 200.
    """

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self.got: list[dict[str, Any]] = []
        self.calls: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.calls.append((dict(self.headers.items()), content))
                status = receiver.answers.pop(0) if receiver.answers else 200
                if status == 200:
                    receiver.got.append(json.loads(content))
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_said: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}/hooks/s3cret"


@contextmanager
def receiving(authority: Authority | None = None) -> Iterator[Receiver]:
    """A receiver, over https with an authority, until the block ends; who sends here has patience meanwhile.

    A message that does not arrive in time is sent again later, by a clock that a test may not turn.
    """
    tls = None
    if authority is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*authority.issue())
    receiver = Receiver(tls)
    thread = threading.Thread(target=receiver.server.serve_forever, args=(0.02,))
    thread.start()
    try:
        with pytest.MonkeyPatch.context() as patient:
            for name in ("CONNECT_SECONDS", "SECONDS"):
                patient.setattr(sending, name, PATIENCE_SECONDS)
            yield receiver
    finally:
        receiver.server.shutdown()
        thread.join()
        receiver.server.server_close()


def authority_in(folder: Path) -> Authority:
    """A new authority, whose file SSL_CERT_FILE may name."""
    return Authority(folder)
