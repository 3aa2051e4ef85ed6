"""What is measured: each piece is a part, in which all ways or faults take turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bench.secure.costs import JOBS, LISTINGS
from bench.secure.figures import JOB, LISTING, MASTERS, SERVICE, VIEWS
from bench.secure.masters import MASTERS_HIT
from bench.secure.pairs import SERVICES
from bench.secure.scene import Place
from bench.secure.views import VIEWS_SEEN

PIECES: Mapping[str, Callable[[Place], None]] = {
    JOB: JOBS,
    LISTING: LISTINGS,
    SERVICE: SERVICES,
    MASTERS: MASTERS_HIT,
    VIEWS: VIEWS_SEEN,
}
