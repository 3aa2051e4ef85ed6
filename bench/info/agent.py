"""Real agents with small collectors, beside Debian's node exporter: what the watching itself costs a node."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench.info.errors import BenchError
from bench.info.figures import Found
from bench.info.processes import Usage, await_ready, clean_environment, free_port, running, usage
from bench.info.scale import Scale
from bench.info.server import Service, serving
from bench.info.wire import Address, ask_json, ask_once, request
from collectors.agent.run.fork import RESERVED
from infosvc.shipping.bundle import build, catalog
from infosvc.wire.records import Kind, Scope

VALUES = 50
EMITTED = 10
FRESH_SECONDS = 30.0
PATIENCE_SECONDS = 120.0
EXPORTER = "prometheus-node-exporter"
EXPORTED = ("cpu", "diskstats", "filefd", "filesystem", "hwmon", "loadavg", "meminfo", "netclass", "netdev", "pressure",
            "stat", "time", "uname")  # fmt: skip
"""Its collectors that bring what a node's slots bring by default, as far as it has such; `processes`, which reads every
process of the machine to count them, would take ten times as much as these together."""
ALWAYS_THERE = ("cpu_count", "load_1m", "memory_total_bytes")
"""What collectors that ship bring on every machine."""
PYTHON = "/usr/bin/python3"  # a node's own


@dataclass(frozen=True)
class Watcher:
    """Something that watches this machine; `key` begins the names of its figures."""

    key: str
    measure: Callable[[], Usage]
    scrape: Callable[[], object] = lambda: None
    names: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Watched:
    """A service, the agents that report to it, and the node exporter where there is one."""

    service: Service
    agents: list[Watcher]
    exporter: list[Watcher]


@contextmanager
def watching(directory: Path, scale: Scale) -> Iterator[Watched]:
    """An agent whose runs bring ten values each, one whose bring one each, and one with what ships; a node exporter as
    it is by default, and one with what ships as far as it has that.
    """
    directory.mkdir()
    with ExitStack() as held:
        service = held.enter_context(serving(directory / "service"))
        build(directory / "bundle")
        agents = []
        for key, emitted in (("agent", EMITTED), ("agent_50_runs", 1)):
            names = _register(service, directory, key, emitted, scale)
            agents.append(held.enter_context(_agent(service, directory, key, names)))
        slots = _register_shipped(service)
        agents.append(held.enter_context(_agent(service, directory, "agent_shipped", list(ALWAYS_THERE), slots)))
        exporter = []
        if shutil.which(EXPORTER):
            only = ["--collector.disable-defaults", *(f"--collector.{name}" for name in EXPORTED)]
            exporter = [held.enter_context(_exporter(directory, key, *options))
                        for key, options in (("agent", []), ("agent_shipped", only))]  # fmt: skip
        time.sleep(2 * scale.interval)
        yield Watched(service, agents, exporter)


def one_round(watched: Watched, scale: Scale) -> tuple[Found, Found]:
    """What each used over the same time; the node exporter is asked at the interval at which agents report."""
    everyone = [*watched.agents, *watched.exporter]
    before = [each.measure() for each in everyone]
    until = time.monotonic() + scale.agent
    while (left := until - time.monotonic()) > 0:
        for each in everyone:
            each.scrape()
        time.sleep(min(scale.interval, left))
    used = [_usage(each, earlier) for each, earlier in zip(everyone, before, strict=True)]
    for each in watched.agents:
        _await_values(watched.service, each.names)
    split = len(watched.agents)
    return _merge(used[:split]), _merge(used[split:])


def _usage(watcher: Watcher, before: Usage) -> Found:
    now = watcher.measure()
    return {
        f"{watcher.key}_cores": now.cores(before),
        f"{watcher.key}_children_cores": now.children_cores(before),
        f"{watcher.key}_rss_bytes": float(now.rss),
    }


def _merge(parts: list[Found]) -> Found:
    return {key: value for part in parts for key, value in part.items()}


def _register(service: Service, directory: Path, key: str, emitted: int, scale: Scale) -> list[str]:
    """Register producers whose runs bring `emitted` values each; the names that then have values."""
    script = _script(directory / "bin")
    checked = hashlib.sha256(script.read_bytes()).hexdigest()  # without it, it would run without arguments only
    found: list[str] = []
    for first in range(0, VALUES, emitted):
        parent = f"{key}_{first:02}"
        emits = [f"{parent}.{number}" for number in range(emitted)] if emitted > 1 else []
        body = {"cmd": " ".join([str(script), *emits]), "time_max": scale.interval, "ttl": FRESH_SECONDS}
        ask_json(service.address, service.put(f"producers/{parent}", body | {"emits": emits, "sha256": checked}))
        found += emits or [parent]
    return found


def _register_shipped(service: Service) -> list[str]:
    """Register the catalogue; the data names whose slots every node gets by default."""
    entries = catalog()
    for producer in [entry.producer for entry in entries]:
        if producer.kind is not Kind.EMITTED:
            body = {key: value for key, value in producer.to_json().items() if key not in ("data_name", "version")}
            ask_json(service.address, service.put(f"producers/{producer.data_name}", body))
    return [entry.producer.data_name for entry in entries if entry.autostart and entry.producer.scope is Scope.NODE]


def _script(folder: Path) -> Path:
    """A collector as cheap as reading something and printing it can be: one line, or one for each argument."""
    folder.mkdir(exist_ok=True)
    file = folder / "load"
    file.write_text(
        '#!/bin/sh\nread -r load _ < "$PROC_ROOT/loadavg"\n'
        '[ $# -gt 0 ] || echo "$load"\nfor name; do echo "$name $load"; done\n'
    )
    file.chmod(0o755)
    return file


@contextmanager
def _agent(
    service: Service, directory: Path, key: str, names: list[str], slots: list[str] | None = None
) -> Iterator[Watcher]:
    """The agent of a node called like its key, from what is pushed to nodes, running `slots`, else those of `names`."""
    port, base, node_name = free_port(), directory / key, key.replace("_", "-")
    ask_json(service.address, service.put(f"nodes/{node_name}", {"address": f"127.0.0.1:{port}"}))
    for parent in slots or sorted({name.partition(".")[0] for name in names}):
        ask_json(service.address, service.put(f"nodes/{node_name}/slots/{parent}", {"running": True}))
    file = write_settings(base, directory, service.url, service.token, node_name, port)
    argv, log = [PYTHON, str(directory / "bundle" / "agent.pyz"), "--settings", str(file)], base / "log"
    with running(argv, log, clean_environment()) as process:
        await_ready(process, log, lambda: _answers(("127.0.0.1", port)))
        _await_values(service, names)
        yield Watcher(key, lambda: _agent_alone(process.pid), names=names)


def write_settings(base: Path, directory: Path, url: str, token: str, node_name: str, port: int) -> Path:
    """The file with what an agent is told, in a new folder; `directory` has `bundle`, and in `bin` what it may start.

    `url` may name several services.
    """
    base.mkdir()
    settings = {
        "node_name": node_name,
        "host": "127.0.0.1",
        "port": port,
        "service_url": url,
        "token_file": str(_private(base / "token", token)),
        "directory": str(directory / "bundle"),
        "state_dir": str(base / "state"),
        "allow": [str(directory / "bin")],
    }
    return _private(base / "settings.json", json.dumps(settings))


def _private(file: Path, text: str) -> Path:
    file.touch(mode=0o600)
    file.write_text(text)
    return file


def _agent_alone(pid: int) -> Usage:
    """An agent with its guard and its template; `children` is what ended runs used, and the template to fork them."""
    top = psutil.Process(pid)
    own = top.cpu_times()
    cpu, runs, rss = own.user + own.system, own.children_user + own.children_system, top.memory_info().rss
    for child in top.children():
        with suppress(psutil.NoSuchProcess):
            surroundings, times = child.environ(), child.cpu_times()
            if "STATE_DIR" in surroundings:  # which every run has
                continue
            if RESERVED in surroundings:
                runs += times.user + times.system + times.children_user + times.children_system
            else:
                cpu += times.user + times.system
            rss += child.memory_full_info().uss  # the rest it shares with the agent
    return Usage(time.monotonic(), cpu, runs, rss)


def _await_values(service: Service, names: list[str]) -> None:
    """Wait until every name has a fresh value."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    query = "&".join(f"name={name}" for name in names)
    while True:
        answers = ask_json(service.address, request("GET", f"/api/v1/data?{query}", service.token))["data"]
        missing = [each["data_name"] for each in answers if [row["state"] for row in each["values"]] != ["fresh"]]
        if not missing:
            return
        if time.monotonic() > deadline:
            raise BenchError(f"{len(missing)} names got no fresh value from an agent, for example {missing[0]}")
        time.sleep(0.2)


@contextmanager
def _exporter(directory: Path, key: str, *options: str) -> Iterator[Watcher]:
    port, log = free_port(), directory / f"exporter-{key}.log"
    address = ("127.0.0.1", port)
    argv = [EXPORTER, f"--web.listen-address=127.0.0.1:{port}", "--log.level=error", *options]
    with running(argv, log) as process:
        await_ready(process, log, lambda: _answers(address, "/"))
        yield Watcher(key, lambda: usage(process.pid), lambda: ask_once(address, request("GET", "/metrics")))


def _answers(address: Address, path: str = "/healthz") -> bool:
    with suppress(BenchError):
        ask_once(address, request("GET", path))
        return True
    return False
