"""Debian's Prometheus, scraping the same values from the same number of nodes."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from bench.info.errors import BenchError
from bench.info.exporter import exporting
from bench.info.processes import await_ready, clean_environment, free_port, running
from bench.info.scale import Scale
from bench.info.wire import Address, Line, request


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
