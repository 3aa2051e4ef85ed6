"""Which tests of benches are left to a long run."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def only_when_long(request: pytest.FixtureRequest) -> None:
    """Skip a whole bench: its parts are tried by others, and it changes more seldom than the product does."""
    if not request.config.getoption("--long"):
        pytest.skip("it is a bench of minutes: --long")
