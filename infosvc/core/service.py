"""Everything one service consists of, opened in the order in which it depends on each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from flask import Flask

from infosvc.access.audit import WITH_KEY, AuditLog
from infosvc.access.audit_key import NUMBER, key_from, number_of, refuse_missing, refuse_other
from infosvc.access.authenticator import Authenticator
from infosvc.access.body_limit import PART_FOR_STRANGERS, PIECE_BYTES, BodyLimit
from infosvc.access.noted_calls import NotedCalls
from infosvc.access.sessions import Sessions
from infosvc.access.tickets import open_acceptor
from infosvc.alerts.watching import AlertWatch
from infosvc.core.metrics import Metrics
from infosvc.core.readiness import Readiness
from infosvc.data.admission import Admission
from infosvc.data.cluster_hour import ClusterHours
from infosvc.data.curves import Curves
from infosvc.data.event_sources import SourceReader
from infosvc.data.events import Broker
from infosvc.management.agent_client import AgentClient
from infosvc.management.notifier import Notifier
from infosvc.management.watchdog import Watchdog
from infosvc.posting.postman import Postman
from infosvc.settings import Clock, Settings
from infosvc.state.database import Database, parse_url
from infosvc.state.transaction import Transaction
from infosvc.state.views import Latest
from infosvc.state.writer import Writer
from infosvc.tasks.archives import Archives
from infosvc.tasks.tunnels import Tunnels
from infosvc.tasks.upkeep import Upkeep
from infosvc.tracking.recording import Turns
from infosvc.tracking.upkeep import upkeep


@dataclass(frozen=True)
class Components:
    """The parts of one service on an open database; `close` stores what waits and lets the database go."""

    settings: Settings
    store: Database
    latest: Latest
    writer: Writer
    authenticator: Authenticator
    bodies: BodyLimit
    strangers: BodyLimit  # bodies of callers that show no token, who must hold up nobody else
    admission: Admission
    readiness: Readiness
    audit_log: AuditLog
    noted_calls: NotedCalls
    agents: AgentClient
    notifier: Notifier
    broker: Broker
    curves: Curves
    cluster_hours: ClusterHours
    sources: SourceReader
    metrics: Metrics
    watchdog: Watchdog
    archives: Archives
    tasks: Upkeep
    tunnels: Tunnels
    postman: Postman
    alerts: AlertWatch
    turns: Turns  # of calls with points of metrics

    @classmethod
    def open(cls, settings: Settings, clock: Clock) -> Components:
        """Open the database and start the threads that work on it; the errors are those of create_app."""
        agents, acceptor = AgentClient(settings), open_acceptor(settings.spnego_keytab)
        store = Database(parse_url(settings.database), clock, bool(settings.shared_with))
        try:
            latest = Latest(*store.load(), settings, clock)
            audit_log = _audit_log(settings, latest, store)
        except BaseException:
            store.close()
            raise
        notifier = Notifier(settings, latest, agents)
        broker = Broker(clock, settings.watchers)
        curves = Curves(clock, settings.curves, latest.current_values)
        writer = Writer(latest, store, settings, [notifier.tell, broker.hear, curves.hear])
        watchdog = Watchdog(latest, writer, settings, audit_log)
        watchdog.listeners.append(broker.publish)
        archives = Archives(_folder(settings, store), settings, clock.wall)
        return cls(
            settings,
            store,
            latest,
            writer,
            Authenticator(settings, latest, Sessions(clock), acceptor),
            BodyLimit(settings.threads, settings.body_seconds, small_bytes=PIECE_BYTES),
            BodyLimit(settings.threads // 4, settings.body_seconds * PART_FOR_STRANGERS, 1),
            Admission(settings, latest),
            Readiness(writer, store),
            audit_log,
            NotedCalls(writer, clock, audit_log),
            agents,
            notifier,
            broker,
            curves,
            ClusterHours(curves, clock),
            SourceReader(broker),
            Metrics(latest, writer, broker, curves),
            watchdog,
            archives,
            Upkeep(latest, writer, archives, settings, upkeep(latest, writer, settings)),
            Tunnels(clock, settings.threads),
            Postman(latest, writer, settings),
            AlertWatch(latest, writer, watchdog.is_lost),
            Turns(),
        )

    def close(self) -> None:
        """End what watches and works, then store what waits."""
        self.broker.close()
        self.tunnels.close()
        self.sources.close()
        self.alerts.close()
        self.postman.close()
        self.watchdog.close()
        self.tasks.close()
        self.noted_calls.close()
        self.writer.close()
        self.notifier.close()
        self.store.close()


def _audit_log(settings: Settings, latest: Latest, store: Database) -> AuditLog:
    """The log, sealed with the key in the file that the settings name; without one, with plain hashes."""
    if settings.audit_key is None:
        return AuditLog()
    file, newest = Path(settings.audit_key), latest.configuration.audit.get("last")
    if settings.shared_with:  # a key of its own would seal what the other service cannot check
        if newest is not None and newest.hash.startswith(WITH_KEY):
            refuse_missing(file)
        refuse_other(file, latest.configuration.counters.get(NUMBER))
    secret = key_from(file, newest).secret
    if latest.configuration.counters.get(NUMBER) != (number := number_of(secret)):
        told = Transaction(latest.configuration, latest.current_values)
        told.put("counters", (NUMBER,), number)
        store.save(told)
        latest.configuration = told.configuration
    return AuditLog(secret)


def _folder(settings: Settings, store: Database) -> Path | None:
    """Where archives of tasks are kept: where the settings say, or beside a database that is a file."""
    if settings.task_files is not None:
        return Path(settings.task_files)
    return store.file.with_name("files") if store.file else None


def components_of(app: Flask) -> Components:
    """The parts behind an application that create_app made."""
    components: Components = app.extensions["infosvc"]
    return components
