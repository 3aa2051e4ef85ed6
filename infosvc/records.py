"""Kept for programs that import `infosvc.records`, as before the rooms: everything of infosvc.wire.records."""

from infosvc.wire.records import *  # noqa: F403
