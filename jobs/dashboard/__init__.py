"""The calls behind the dashboard's pages of HDFS paths and jobs, and those that read what tasks leave.

Whoever stands above both adds them to the service:

    make_board(home, values, note, open_paths)

    home     nodewise's home, where `nodewise cluster up` keeps its site files
    values   what the service knows: `data(data_name)` and `task(task_id)` as InfoClient has them, all tasks, who calls
             and what the call's body holds
    note     called within the request that ends a job or gives one to a pool, before it does: leaves the line in the
             audit log
    open_paths  of HDFS, which every caller sees as the service does where Hadoop has Kerberos

`nodewise.board` hands them to the service, which answers an InfoError in its own form, and tells events of jobs.

Nothing here starts a JVM in this process: YARN is asked over its REST interface, HDFS over WebHDFS, and a job is ended
by the command that a person would type, in a process of its own. `routes` lists the calls, `calls` answers them,
and their JSON stands in `answers`, `path_answers` and the wire's records.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jobs.dashboard.calls import Calls, Tell
from jobs.dashboard.routes import BoardRoute
from jobs.dashboard.sources.site import Site
from jobs.dashboard.sources.values import ServiceView
from jobs.dashboard.views import View, make_views

if TYPE_CHECKING:
    from jobs.dashboard.sources.yarn import Known


class Board(NamedTuple):
    """The calls and what answers each, what tells each change of a job since it was called last, and what lists the
    jobs that failed and the queues in which applications run."""

    routes: list[tuple[BoardRoute, View]]
    look: Callable[[Tell], None]
    failed_jobs: Callable[[], list[Known]]
    busy_queues: Callable[[], frozenset[str]]


def make_board(
    home: Path, values: ServiceView, note: Callable[[], None] = lambda: None, open_paths: Sequence[str] = ()
) -> Board:
    """All that the service answers and tells of HDFS and jobs.

    The cluster is looked for when a call needs it: it may be started later than the service.
    """
    conf_dir = os.environ.get("HADOOP_CONF_DIR")
    site = Site(home, Path(conf_dir) if conf_dir else None, os.environ.get("HADOOP_USER_NAME"))
    calls = Calls(site, values, note, tuple(open_paths))
    return Board(make_views(calls), calls.look, calls.failed_jobs, calls.busy_queues)
