"""Wires the service: create_app(settings) for any WSGI server, Server for the one that ships."""

from __future__ import annotations

import os
import socket
import threading
from typing import Any

from flask import Flask, jsonify, request
from flask.typing import ResponseReturnValue
from waitress import wasyncore
from waitress.server import create_server

from infosvc import api, auth
from infosvc.api.restx import error_response
from infosvc.errors import InvalidInput
from infosvc.latest import Draft, Latest
from infosvc.manage import Notices
from infosvc.settings import Clock, Settings
from infosvc.store import Store, parse_url
from infosvc.writer import Writer


def create_app(settings: Settings, clock: Clock | None = None) -> Flask:
    """The service on an open database, its writer running; end it with close_app.

    Raises InvalidInput for a database URL of another kind, NotReady when the database does not answer, Conflict
    when a newer version made it.
    """
    clock = clock or Clock()
    store = Store(parse_url(settings.database), clock)
    notices = Notices(settings)
    try:
        latest = notices.latest = Latest(store.load(), settings, clock)
    except BaseException:
        store.close()
        raise
    app = Flask("infosvc", static_folder=None)
    app.config.update(MAX_CONTENT_LENGTH=settings.max_body, RESTX_MASK_SWAGGER=False)
    app.extensions.update(
        {
            "infosvc.latest": latest,
            "infosvc.writer": Writer(latest, store, settings, notices.tell),
            "infosvc.notices": notices,
            "infosvc.store": store,
        }
    )
    app.register_blueprint(api.build())
    app.register_error_handler(Exception, error_response)
    app.before_request(lambda: auth.check(request.method, request.headers.get("Authorization"), settings.token))
    app.add_url_rule("/healthz", "healthz", lambda: jsonify({"status": "ok"}))
    app.add_url_rule("/readyz", "readyz", lambda: _ready(app))
    return app


def close_app(app: Flask) -> None:
    """Store what waits and let the database go."""
    app.extensions["infosvc.writer"].close()
    app.extensions["infosvc.notices"].close()
    app.extensions["infosvc.store"].close()


class Server:
    """The service listening on one address; `run` serves until `stop` is called."""

    def __init__(self, settings: Settings, host: str, port: int, clock: Clock | None = None) -> None:
        """Take the port (0: a free one), then open the database; InvalidInput when the port cannot be had."""
        listener = _listen(host, port)
        try:
            self.app = create_app(settings, clock)
        except BaseException:
            listener.close()
            raise
        # Flask refuses what is over max_body in our form; the server's own limit only bounds what it buffers.
        limits = {"threads": settings.threads, "max_request_body_size": 16 * settings.max_body, "ident": "nodewise"}
        self._server: Any = create_server(self.app, sockets=[listener], **limits)
        self._ended = threading.Event()
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{listener.getsockname()[1]}"

    def run(self) -> None:
        """Serve until told to end, then finish the requests that run and store what they wrote."""
        try:
            while not self._ended.is_set():
                self._turn(1.0)
            self._server.task_dispatcher.shutdown()
            self._turn(0.0)
        finally:
            close_app(self.app)
            wasyncore.close_all(self._server._map)

    def stop(self) -> None:
        """End `run`; from another thread or a signal handler."""
        self._ended.set()
        self._server.pull_trigger()

    def _turn(self, seconds: float) -> None:
        wasyncore.loop(timeout=seconds, map=self._server._map, count=1)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family, backlog=1024)
    except (OSError, UnicodeError) as error:
        # create_server adds the address to the system's words; a look-up has words of its own.
        plain = isinstance(error, OSError) and not isinstance(error, socket.gaierror) and error.errno
        why = os.strerror(plain) if plain else getattr(error, "strerror", error)
        raise InvalidInput(
            f"cannot listen on {host}:{port} ({why}): stop what uses it, or choose another with --host and --port",
            "port",
        ) from error


def _ready(app: Flask) -> ResponseReturnValue:
    def nothing(_draft: Draft) -> None:
        """A change of nothing: it is stored only when the database answers."""

    app.extensions["infosvc.writer"].write(nothing)
    return jsonify({"status": "ready"})
