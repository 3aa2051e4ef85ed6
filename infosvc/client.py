"""Kept for programs that import `infosvc.client`, as before the rooms: everything of infosvc.wire.client."""

from infosvc.wire.client import *  # noqa: F403
from infosvc.wire.token_file import *  # noqa: F403
