"""A relay between a caller and a listener: it keeps all that the callers said, and tells who listens."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Relay:
    """Passes connections on to `target`, which may move; `said` is what each caller sent, `heard` what came back.

    `lost` is what callers said while nobody listened there.
    """

    def __init__(self, target: tuple[str, int]) -> None:
        self.target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self._listener.getsockname())
        self.said: list[bytes] = []
        self.heard: list[bytes] = []
        self.lost: list[bytes] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self) -> None:
        """Take no further connection."""
        self._listener.close()

    def requests(self, word: str) -> list[bytes]:
        """What was said in connections whose callers asked for a path with this word."""
        return [said for said in self.said if word.encode() in said.partition(b" HTTP/")[0]]

    def is_answered(self, word: str) -> bool:
        """Whether something came back in each of these connections."""
        pairs = zip(self.said, self.heard, strict=False)  # a connection may come meanwhile
        return all(heard for said, heard in pairs if word.encode() in said.partition(b" HTTP/")[0])

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._listener.accept()
                place = len(self.said)
                self.said.append(b"")
                self.heard.append(b"")
                try:
                    target = socket.create_connection(self.target, timeout=60)
                except OSError:
                    threading.Thread(target=self._lose, args=(caller,), daemon=True).start()
                    continue
                for kept, source, sink in ((self.said, caller, target), (self.heard, target, caller)):
                    threading.Thread(target=_pass_on, args=(kept, place, source, sink), daemon=True).start()

    def _lose(self, caller: socket.socket) -> None:
        with suppress(OSError), caller:
            caller.settimeout(5.0)  # for ever, callers would wait that are not the first to speak
            self.lost.append(caller.recv(65536))


def _pass_on(kept: list[bytes], place: int, source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(65536):
            kept[place] += chunk
            sink.sendall(chunk)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)
    source.close()


def send(address: tuple[str, int], request: bytes) -> int:
    """Say exactly these bytes; the status of the answer."""
    with socket.create_connection(address, timeout=60) as connection:
        connection.sendall(request)
        return int(connection.makefile("rb").readline().split()[1])
