"""How far a job is: of what it has to do, a share; with nothing to do it is done."""

from __future__ import annotations

import pytest

from jobs.application.coordinator import Progress


@pytest.mark.parametrize(
    ("done", "of", "share", "is_done"), [(0, 4, 0.0, False), (3, 4, 0.75, False), (4, 4, 1.0, True), (0, 0, 0.0, True)]
)
def test_a_share_of_what_is_to_be_done_and_whether_nothing_is_left(
    done: int, of: int, share: float, is_done: bool
) -> None:
    progress = Progress(done, of, "numbers", {})

    assert (progress.share, progress.is_done) == (share, is_done)
