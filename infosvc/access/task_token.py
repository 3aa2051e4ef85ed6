"""The token of a task: its runner and its program show it. It is made of what is known anyway, so none is kept."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from functools import cache

from infosvc.state.configuration import StoredTask
from infosvc.wire.errors import Unauthorized
from infosvc.wire.tasks import Task

_FORM = re.compile("nw_task_([0-9a-f]{16})_([0-9a-f]{64})")


def text_of(task: Task, secret: str) -> str:
    """The text of a task's token; whoever has the service's `secret` can make it."""
    said = f"token of {task.task_id}, asked for at {task.created_at!r}"
    proof = hmac.digest(_key(secret), said.encode(), "sha256").hex()
    return f"nw_task_{task.task_id.removeprefix('task_')}_{proof}"


def recognise(text: str, secret: str, tasks: Mapping[str, StoredTask]) -> Task | None:
    """The task whose token a text is, None for no task's; Unauthorized once it has ended."""
    found = _FORM.fullmatch(text)
    stored = tasks.get(f"task_{found[1]}") if found else None
    if stored is None or not hmac.compare_digest(text, text_of(stored.task, secret)):
        return None
    if stored.task.ended_at is not None:
        raise Unauthorized(f"{stored.task.task_id} has ended, and its token with it", "Authorization")
    return stored.task


def still_holds(task_id: str, created_at: float, tasks: Mapping[str, StoredTask]) -> bool:
    """Whether a task whose token was good goes on; another one may have its id meanwhile."""
    now = tasks.get(task_id)
    return now is not None and now.task.ended_at is None and now.task.created_at == created_at


@cache
def _key(secret: str) -> bytes:
    """A key of which nobody who has a token can find a short secret by trying: each try takes a while."""
    return hashlib.scrypt(secret.encode(), salt=b"tokens of tasks", n=2**14, r=8, p=1)
