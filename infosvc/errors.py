"""Kept for programs that import `infosvc.errors`, as before the rooms: everything of infosvc.wire.errors."""

from infosvc.wire.errors import *  # noqa: F403
