"""The service under test: the real command, in a home of its own."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.info.errors import BenchError
from bench.info.processes import await_ready, clean_environment, free_port, running
from bench.info.scale import Scale
from bench.info.wire import Address, Line, ask_json, drive, request

NODEWISE = (sys.executable, "-m", "nodewise")
_LINES = 8


@dataclass(frozen=True)
class Service:
    """One that runs, the token that may do everything, and the token of each node's agent once it is enrolled."""

    address: Address
    token: str
    pid: int
    agents: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """For agents."""
        return f"http://{self.address[0]}:{self.address[1]}"

    def read(self, data_name: str) -> bytes:
        """The request for one name on all nodes."""
        return request("GET", f"/api/v1/data/{data_name}", self.token)

    def put(self, path: str, body: dict[str, Any]) -> bytes:
        """A request that changes something."""
        return request("PUT", f"/api/v1/{path}", self.token, json.dumps(body).encode())

    def values(self, data_name: str) -> list[dict[str, Any]]:
        """One name on all nodes, decoded."""
        rows: list[dict[str, Any]] = ask_json(self.address, self.read(data_name))["values"]
        return rows

    def kill(self) -> None:
        """End it as a failure would."""
        os.kill(self.pid, signal.SIGKILL)


@contextmanager
def serving(home: Path, ack: str = "durable", database: str | None = None) -> Iterator[Service]:
    """`nodewise serve` on loopback, until the block ends; a home that is there already is used again."""
    home.mkdir(exist_ok=True)
    log, port = home / "log", free_port()
    argv = [*NODEWISE, "--home", str(home), "serve", "--port", str(port), "--ack", ack]
    argv += ["--calls-per-second", "0"]  # all load comes from one address, with one token
    argv += ["--database", database] if database else []
    address = ("127.0.0.1", port)
    with running(argv, log, clean_environment()) as process:
        await_ready(process, log, lambda: _is_ready(address))
        yield Service(address, (home / "service" / "token").read_text().strip(), process.pid)


def _is_ready(address: Address) -> bool:
    with suppress(BenchError):
        ask_json(address, request("GET", "/readyz"))
        return True
    return False


def enrol(service: Service, scale: Scale) -> None:
    """Register the simulated names and nodes, as an operator would have done."""
    producer = {"kind": "program", "time_max": scale.interval, "unit": "seconds"}
    machine = {"address": "127.0.0.1:8410", "agent_version": "bench"}
    send_all(service, [service.put(f"producers/{name}", producer) for name in scale.data_names])
    send_all(service, [service.put(f"nodes/{name}", machine) for name in scale.node_names])
    made = send_all(service, [_ask_for_token(service, name) for name in scale.node_names])
    service.agents.update((answer["name"], answer["token"]) for answer in map(json.loads, made))


def _ask_for_token(service: Service, node_name: str) -> bytes:
    body = {
        "name": node_name,
        "role": "admin",
    }  # an agent may bring only what its slots produce, of which none are made
    return request("POST", "/api/v1/tokens", service.token, json.dumps(body).encode())


def send_all(service: Service, messages: Sequence[bytes]) -> list[bytes]:
    """Send requests, some at once; the answers in any order. BenchError unless all are granted."""
    lines = [Line(service.address) for _ in range(_LINES)]
    left = iter(messages)
    answers: list[bytes] = []
    try:
        drive(lines, lambda _line: next(left, None), lambda line, _seconds: answers.append(line.body()))
    finally:
        close(lines)
    return answers


def close(lines: Iterable[Line]) -> None:
    """Give connections up."""
    for line in lines:
        line.close()
