"""Has Docker pull an image from its caller, layer by layer; Docker fetches several at once, and none that it has.

The caller serves the image on a port of 127.0.0.1, which Docker trusts without TLS, under a name that nobody else
knows. Docker takes nothing that was not allowed, whatever it is sent there: it is told the digest of a manifest that
follows from the allowed id (boxes.broker.manifest), and compares all bytes with their digests before it unpacks any.
What is left to bound is how much it is sent, and how long that takes.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from contextlib import suppress

from boxes.broker.engine import LOAD_SECONDS, Engine
from boxes.broker.images import check_room
from boxes.broker.manifest import digest_of, manifest_of
from boxes.broker.order import Pull, Refusal

SILENCE_SECONDS = 60.0
"""How long Docker may tell nothing: it tells of each piece that comes or is unpacked."""


def pull(engine: Engine, order: Pull, caller: socket.socket) -> None:
    """Return once Docker has the image; errors are Refusal, EngineError and OSError. It ends when the caller has."""
    configuration = order.configuration.encode()
    if digest_of(configuration) != order.image:
        raise Refusal(f"the configuration is that of {digest_of(configuration)} and not of {order.image}")
    digest = digest_of(manifest_of(configuration, order.sizes))
    folder = str(engine.ask("GET", "/info")["DockerRootDir"])
    check_room(folder, folder)
    deadline = time.monotonic() + LOAD_SECONDS
    name = f"127.0.0.1:{order.port}/{order.name}"
    for _ in engine.pull(name, digest, SILENCE_SECONDS, lambda asked: _end_with(caller, asked)):
        check_room(folder, folder)
        if time.monotonic() > deadline:
            raise Refusal(f"the image did not come within {LOAD_SECONDS:g} s", "look at the node's disk and network")


def _end_with(caller: socket.socket, asked: socket.socket) -> None:
    """Have Docker give up when the caller hangs up; its server has gone then, and Docker would look for it."""
    looking = select.poll()
    looking.register(caller, select.POLLRDHUP)  # before the thread begins, as the pull may end before that
    threading.Thread(target=_wait_for_end, args=(looking, asked), name="hung up", daemon=True).start()


def _wait_for_end(looking: select.poll, asked: socket.socket) -> None:
    looking.poll()
    with suppress(OSError):  # it is closed already
        asked.shutdown(socket.SHUT_RDWR)
