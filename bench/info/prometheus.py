"""Debian's Prometheus, scraping the same values of the same nodes from pages that a process of their own serves."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import quote

from bench.info.errors import BenchError
from bench.info.processes import await_ready, clean_environment, free_port, running
from bench.info.scale import Scale
from bench.info.simulate import processes, stamp
from bench.info.wire import Address, Line, request

_STAMP = b"@stamp@"


def is_installed() -> bool:
    """Whether this machine has it; without it its column stays empty."""
    return shutil.which("prometheus") is not None


@dataclass(frozen=True)
class Prometheus:
    """One that runs; paused, it keeps what it holds and uses no CPU time."""

    process: subprocess.Popen[bytes]
    address: Address

    def pause(self) -> None:
        """Let it stand still while the other side is measured."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it scrape again."""
        self.process.send_signal(signal.SIGCONT)


def query(text: str) -> bytes:
    """An instant query."""
    return request("GET", f"/api/v1/query?query={quote(text)}")


def values(body: bytes) -> dict[str, float]:
    """The answer to a query: node name -> value."""
    return {row["metric"]["node"]: float(row["value"][1]) for row in json.loads(body)["data"]["result"]}


@contextmanager
def scraping(directory: Path, scale: Scale) -> Iterator[Prometheus]:
    """A Prometheus on loopback that scrapes all pages, until the block ends."""
    directory.mkdir()
    log, port = directory / "log", free_port()
    with ExitStack() as held:
        (directory / "prometheus.yml").write_text(_configuration(scale, held.enter_context(exporting(scale))))
        argv = [
            "prometheus",
            f"--config.file={directory / 'prometheus.yml'}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=warn",
        ]
        process = held.enter_context(running(argv, log, clean_environment()))
        found = Prometheus(process, ("127.0.0.1", port))
        held.callback(found.go_on)  # a stopped process would not see that it is asked to end
        await_ready(process, log, lambda: _has_all(found, scale))
        yield found


def _has_all(prometheus: Prometheus, scale: Scale) -> bool:
    """Whether it has scraped every page."""
    with suppress(BenchError):
        line = Line(prometheus.address)
        try:
            return len(values(line.ask(query(scale.data_names[-1])))) == scale.nodes
        finally:
            line.close()
    return False


def _configuration(scale: Scale, port: int) -> str:
    """JSON, which is YAML too."""
    targets = [
        {"targets": [f"127.0.0.1:{port}"], "labels": {"__metrics_path__": f"/metrics/{page}", "page": str(page)}}
        for page in range(scale.pages)
    ]
    return json.dumps(
        {
            "global": {"scrape_interval": f"{scale.interval:g}s", "scrape_timeout": f"{scale.interval:g}s"},
            "scrape_configs": [{"job_name": "bench", "static_configs": targets}],
        }
    )


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
