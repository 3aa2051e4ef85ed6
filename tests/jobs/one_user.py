"""What becomes of the calls of one user who makes many at once, and of another's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from werkzeug.test import TestResponse

from infosvc.access.roles import Caller
from infosvc.wire.records import Role
from jobs.application.calls import Request
from tests.jobs.conftest import Values
from tests.jobs.test_pool_client import Place


def ask_once_too_often(
    post: Callable[[], TestResponse], pool: Place, answer: Mapping[str, Any], most: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[TestResponse, list[int]]:
    """What a call gets while the master has `most` of the same user's already, and the status of all others.

    The last of those is another user's, which the master hears meanwhile.
    """
    answers, heard = threading.Event(), threading.Semaphore(0)

    def hear(call: str, request: Request) -> Mapping[str, Any]:
        heard.release()
        assert answers.wait(60)
        return answer

    monkeypatch.setattr(pool.master, "hear", hear)
    with ThreadPoolExecutor(most + 1) as threads:
        asked = [threads.submit(post) for _ in range(most)]
        try:
            assert all(heard.acquire(timeout=60) for _ in asked)
            refused = threads.submit(post).result(30)
            monkeypatch.setattr(Values, "viewer", lambda _: Caller("jan", Role.USER, user_name="jan"))
            asked.append(threads.submit(post))
            assert heard.acquire(timeout=60), "another user's is heard"
        finally:
            answers.set()
        return refused, [one.result(60).status_code for one in asked]
