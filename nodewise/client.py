"""What a program needs to speak with the information service; the standard library is enough."""

from infosvc.wire.client import DEFAULT_URL, InfoClient
from infosvc.wire.errors import InfoError
from infosvc.wire.records import Datum, Kind, Producer, State

__all__ = ["DEFAULT_URL", "Datum", "InfoClient", "InfoError", "Kind", "Producer", "State"]
