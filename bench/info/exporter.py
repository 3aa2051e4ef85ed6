"""The same nodes as Prometheus reads them: pages of numbers, served from a process of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection

from bench.info.scale import Scale
from bench.info.simulate import processes, stamp

_STAMP = b"@stamp@"


def pages(scale: Scale) -> list[bytes]:
    """One text page for each target, every number of which is to become the moment it was read."""
    return [_page(scale.data_names, scale.node_names[number :: scale.pages]) for number in range(scale.pages)]


def first_nodes(scale: Scale) -> list[str]:
    """One node of every page."""
    return scale.node_names[: scale.pages]


def _page(names: Sequence[str], nodes: Sequence[str]) -> bytes:
    lines = []
    for name in names:
        lines.append(f"# TYPE {name} gauge\n")
        lines += [f'{name}{{node="{node}"}} {_STAMP.decode()}\n' for node in nodes]
    return "".join(lines).encode()


def _serve(talk: Connection, scale: Scale) -> None:
    made = pages(scale)

    class Page(BaseHTTPRequestHandler):
        """GET /metrics/NUMBER"""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """Every number is now."""
            body = made[int(self.path.rsplit("/", 1)[1])].replace(_STAMP, stamp().encode())
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    class Server(ThreadingHTTPServer):
        """One thread for each connection that Prometheus keeps."""

        def handle_error(self, *_: object) -> None:
            """A page was not read to its end, as when Prometheus stood still: it comes again."""

    server = Server(("127.0.0.1", 0), Page)
    talk.send(server.server_address[1])
    server.serve_forever()


@contextmanager
def exporting(scale: Scale) -> Iterator[int]:
    """Serve the pages while the block runs, on the loopback port that is yielded."""
    ours, theirs = processes.Pipe()
    child = processes.Process(target=_serve, args=(theirs, scale), daemon=True)
    child.start()
    theirs.close()
    try:
        yield int(ours.recv())
    finally:
        child.terminate()
        child.join()
        ours.close()
