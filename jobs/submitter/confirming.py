"""Whether the service of a submitter still has its database, asked right before YARN gets a task.

Of two services one may stand still while its submitter does not: the other one takes over, and its submitter begins the
same task. The news that are told here change nothing, but only the service that has the database can take them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from infosvc.wire.client import InfoClient
from infosvc.wire.errors import NotReady
from infosvc.wire.tasks import Task, TaskNews

SURE_SECONDS = 2.0
"""So soon no other service has the database. An answer that took longer may be of one that stood still since it made
it, so it is asked again."""
MOST_TRIES = 3


def confirm(client: InfoClient, task: Task, clock: Callable[[], float] = time.monotonic) -> None:
    """Return if the service has its database; NotReady, or another InfoError, if it has not or nobody knows."""
    news = TaskNews(task.state, application_id=task.application_id)
    for _ in range(MOST_TRIES):
        asked = clock()
        client.put_task_news(task.task_id, news)
        if clock() - asked < SURE_SECONDS:
            return
    raise NotReady(
        f"the service takes more than {SURE_SECONDS:g} s to say that it has its database, so {task.task_id} waits",
        remedy="look what keeps its machine or its database busy",
    )
