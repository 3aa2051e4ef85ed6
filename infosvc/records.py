"""Kept for programs that import `infosvc.records`, as before the rooms: the records of the wire."""

from infosvc.wire.answers import *  # noqa: F403
from infosvc.wire.records import *  # noqa: F403
