"""Kept for programs that import `infosvc.client`, as before the rooms: everything of infosvc.wire.client."""

from infosvc.wire.client import *  # noqa: F403
from infosvc.wire.service_options import read_token as read_token
from infosvc.wire.service_options import token_path as token_path
