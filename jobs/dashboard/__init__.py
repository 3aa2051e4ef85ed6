"""The calls behind the dashboard's pages of HDFS paths and jobs, added to the service by whoever stands above both.

    mount(app, needs, home, values, note)

    app      the Flask application of the service, which answers an InfoError in its own form
    needs    declares beside a view who may call it: infosvc.access.roles.needs
    home     nodewise's home, where `nodewise cluster up` keeps its site files
    values   what the service knows: `data(data_name)` as InfoClient has it, such as infosvc.state.configuration.Latest
    note     called within the request that ends a job, before it does: leaves the line in the audit log

`nodewise` mounts it like this:

    mount(app, needs, home, parts_of(app).latest, lambda: exchange.write(lambda draft: None))

Nothing here starts a JVM in this process: YARN is asked over its REST interface, HDFS over WebHDFS, and a job is ended
by the command that a person would type, in a process of its own. The calls and their JSON stand in `calls`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from flask import Flask

from infosvc.wire.records import Role
from jobs.dashboard.calls import Calls, View, blueprint
from jobs.dashboard.site import Site
from jobs.dashboard.values import Values

Needs = Callable[[Role], Callable[[View], View]]


def mount(app: Flask, needs: Needs, home: Path, values: Values, note: Callable[[], None] = lambda: None) -> None:
    """Add the calls to an application that has not answered any yet.

    The cluster is looked for when a call needs it: it may be started later than the service.
    """
    conf_dir = os.environ.get("HADOOP_CONF_DIR")
    site = Site(home, Path(conf_dir) if conf_dir else None, os.environ.get("HADOOP_USER_NAME"))
    app.register_blueprint(blueprint(needs, Calls(site, values, note)))
