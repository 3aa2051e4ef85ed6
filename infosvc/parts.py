"""Everything one service consists of, opened in the order in which it depends on each other."""

from __future__ import annotations

from dataclasses import dataclass

from flask import Flask

from infosvc.agents import Agents
from infosvc.audit import Refusals
from infosvc.bodies import Bodies
from infosvc.events import Broker
from infosvc.gate import Gate
from infosvc.keeper import Keeper
from infosvc.latest import Latest
from infosvc.metrics import Metrics
from infosvc.notices import Notices
from infosvc.readiness import Readiness
from infosvc.sessions import Sessions
from infosvc.settings import Clock, Settings
from infosvc.store import Store, parse_url
from infosvc.writer import Writer


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
