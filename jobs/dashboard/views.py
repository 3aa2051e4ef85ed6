"""What answers each call of the board: its method, with what can go wrong in the service's own errors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps

from flask.typing import ResponseReturnValue

from hadoop.errors import HadoopError
from hadoop.rest.pages import NotKnown
from infosvc.wire.errors import Forbidden, NotFound, NotReady
from jobs.dashboard.calls import Calls
from jobs.dashboard.routes import ROUTES, BoardRoute
from jobs.dashboard.sources.eyes import NotShown
from jobs.errors import JobError

View = Callable[..., ResponseReturnValue]

MOST_AT_ONCE = 32
"""Calls under way: a Hadoop that hangs must leave the service its other threads."""


def make_views(calls: Calls) -> list[tuple[BoardRoute, View]]:
    """What answers each call of the list."""
    room = threading.BoundedSemaphore(MOST_AT_ONCE)
    return [(route, translate_errors(getattr(calls, route.name), room)) for route in ROUTES]


def translate_errors(view: View, room: threading.BoundedSemaphore) -> View:
    """The view with what can go wrong in the service's own errors: the one place where Hadoop's become those.

    NotReady, at once, when there is no `room` for one more call.
    """

    @wraps(view)
    def call(**named: str) -> ResponseReturnValue:
        if not room.acquire(blocking=False):
            raise NotReady(f"{MOST_AT_ONCE} calls wait for Hadoop already", remedy="try again in a few seconds")
        try:
            return view(**named)
        except NotKnown as error:
            raise NotFound(str(error)) from error
        except NotShown as error:
            raise Forbidden(str(error)) from error
        except HadoopError as error:
            raise NotReady(str(error)) from error
        except JobError as error:
            raise NotFound(str(error)) from error
        finally:
            room.release()

    return call
