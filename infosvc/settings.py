"""Every key of the service once, with default, unit and help; read by the command, given to create_app()."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Ack(StrEnum):
    """When a report is acknowledged: after it is stored, or as soon as readers see it."""

    DURABLE = "durable"
    FAST = "fast"


def _key(default: Any, unit: str, text: str, *, secret: bool = False) -> Any:
    return field(default=default, repr=not secret, metadata={"unit": unit, "help": text})


@dataclass(frozen=True)
class Settings:
    """What one service runs with; `database`, `token` and `notify_secret` are secrets and stay out of its repr."""

    database: str = _key("", "URL", "SQLite file or MySQL/MariaDB database of the tables", secret=True)
    token: str = _key("", "text", "the token of the first admin", secret=True)
    open_reading: bool = _key(True, "yes/no", "whether reading needs no token; only sensible on loopback")
    names: tuple[str, ...] = _key((), "host names", "more names by which this machine is called")
    trusted_proxies: tuple[str, ...] = _key((), "addresses", "proxies that are believed whose call they pass on")
    ack: Ack = _key(Ack.DURABLE, "policy", "when a report is acknowledged: durable or fast")  # noqa: RUF009 - a field, as all others
    heartbeat: float = _key(2.5, "seconds", "how often an agent is heard of; three silent ones make a node stale")
    lost_after: float = _key(15.0, "seconds", "a node not heard of for this time is lost")
    max_body: int = _key(4 << 20, "bytes", "largest body of a request")
    body_seconds: float = _key(5.0, "seconds", "how long a body may take, or the next 64 kB of a long one")
    unread_seconds: float = _key(10.0, "seconds", "how long a caller may not take what is sent to it")
    max_depth: int = _key(32, "levels", "deepest nesting of a JSON body")
    max_nodes_per_name: int = _key(10_000, "nodes", "most nodes for which programs may write one name")
    any_node: bool = _key(False, "yes/no", "whether tokens of processors may write values of nodes nobody enrolled")
    bytes_per_name: int = _key(8 << 20, "bytes", "most bytes of the values of one name that programs write; 0: any")
    bytes_per_token: int = _key(64 << 20, "bytes", "most bytes of values that one token may write an hour; 0: any")
    bytes_in_all: int = _key(64 << 20, "bytes", "most bytes of all values, when programs write more; 0: any")
    max_answer: int = _key(8 << 20, "bytes", "about the largest answer with values, nodes, producers or slots")
    max_rows: int = _key(100_000, "rows", "most rows in one answer of the history or the audit log")
    calls_per_second: float = _key(5_000.0, "calls/second", "what one token, or one address without any, may call")
    refusals_per_second: float = _key(20.0, "calls/second", "refused calls of one address before it must wait")
    curves: int = _key(60_000, "values", "most numbers whose last hour is kept in memory")
    batch: int = _key(500, "changes", "most changes in one commit")
    patience: float = _key(8.0, "seconds", "how long a write waits for the database")
    flush_rows: int = _key(5_000, "rows", "with ack fast, most values stored in one commit")
    shared_with: str = _key("", "URL", "another service of the same database, of which one is active; empty: none")
    flush: float = _key(5.0, "seconds", "with ack fast, time between two rounds in which values are stored")
    notice_timeout: float = _key(2.0, "seconds", "how long the master waits for an agent it tells something")
    notice_threads: int = _key(4, "threads", "how many agents are told at the same time")
    task_days: float = _key(90.0, "days", "how long a task is kept after it has ended")
    most_tasks: int = _key(10_000, "tasks", "most tasks that have ended and are kept; then the oldest go")
    bytes_of_tasks: int = _key(64 << 20, "bytes", "most bytes of what all tasks that are kept ask for")
    task_files: str | None = _key(None, "folder", "where archives of tasks are; beside a database file if left out")
    bytes_per_archive: int = _key(256 << 20, "bytes", "largest tar archive of a task")
    bytes_of_archives: int = _key(10 << 30, "bytes", "most bytes of all tar archives of tasks")
    archive_days: float = _key(7.0, "days", "how long a tar archive is kept that no task names")
    bytes_of_runs: int = _key(
        64 << 20, "bytes", "most bytes of all runs of MLflow but their points; a quarter for a user"
    )
    points_of_run: int = _key(1_000_000, "points", "most points of all metrics of one run of MLflow")
    points_of_runs: int = _key(20_000_000, "points", "most points of all runs of MLflow; a quarter for a user")
    threads: int = _key(128, "threads", "requests answered at the same time, watchers of events included")
    watchers: int = _key(32, "callers", "most callers that watch events at the same time")
    tls_cert: str | None = _key(None, "file", "certificate chain of the service; with it, only https is answered")
    tls_key: str | None = _key(None, "file", "private key of that certificate")
    spnego_keytab: str | None = _key(None, "file", "keys of HTTP/HOST; with it, a ticket of Kerberos logs a user in")
    audit_key: str | None = _key(None, "file", "key that seals the audit log, made when it is missing")
    policy_file: str | None = _key(None, "file", "settings of YARN's plug-in, to be explained at /explain")
    notify_hosts: tuple[str, ...] = _key((), "host names", "hosts to which messages may go that users ask for")
    notify_secret: str = _key("", "text", "signs messages to web addresses; empty: none is signed", secret=True)
    agent_ca: str | None = _key(None, "file", "authority of the agents' certificates; with it, they must speak https")


@dataclass(frozen=True)
class Clock:
    """Two clocks: `monotonic` for ages while the service runs, `wall` (Unix seconds) for what outlives it."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
