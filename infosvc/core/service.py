"""Everything one service consists of, opened in the order in which it depends on each other."""

from __future__ import annotations

from dataclasses import dataclass

from flask import Flask

from infosvc.access.audit import Refusals
from infosvc.access.authenticator import Gate
from infosvc.access.body_limit import Bodies
from infosvc.access.sessions import Sessions
from infosvc.core.metrics import Metrics
from infosvc.core.readiness import Readiness
from infosvc.data.events import Broker
from infosvc.management.agent_client import Agents
from infosvc.management.notifier import Notices
from infosvc.management.watchdog import Keeper
from infosvc.settings import Clock, Settings
from infosvc.state.configuration import Latest
from infosvc.state.database import Store, parse_url
from infosvc.state.writer import Writer


@dataclass(frozen=True)
class Parts:
    """The parts of one service on an open database; `close` stores what waits and lets the database go."""

    settings: Settings
    store: Store
    latest: Latest
    writer: Writer
    gate: Gate
    bodies: Bodies
    strangers: Bodies  # bodies of callers that show no token, who must hold up nobody else
    readiness: Readiness
    refusals: Refusals
    agents: Agents
    notices: Notices
    broker: Broker
    metrics: Metrics
    keeper: Keeper

    @classmethod
    def open(cls, settings: Settings, clock: Clock) -> Parts:
        """Open the database and start the threads that work on it; the errors are those of create_app."""
        agents = Agents(settings)
        store = Store(parse_url(settings.database), clock)
        try:
            latest = Latest(*store.load(), settings, clock)
        except BaseException:
            store.close()
            raise
        notices = Notices(settings, latest, agents)
        broker = Broker(clock, settings.watchers)
        writer = Writer(latest, store, settings, [notices.tell, broker.hear])
        keeper = Keeper(latest, writer, settings)
        keeper.listeners.append(broker.publish)
        return cls(
            settings,
            store,
            latest,
            writer,
            Gate(settings, latest, Sessions(clock)),
            Bodies(settings.threads),
            Bodies(settings.threads // 4),
            Readiness(writer),
            Refusals(writer, clock),
            agents,
            notices,
            broker,
            Metrics(latest, writer, broker),
            keeper,
        )

    def close(self) -> None:
        """End what watches and works, then store what waits."""
        self.broker.close()
        self.keeper.close()
        self.refusals.close()
        self.writer.close()
        self.notices.close()
        self.store.close()


def parts_of(app: Flask) -> Parts:
    """The parts behind an application that create_app made."""
    found: Parts = app.extensions["infosvc"]
    return found
