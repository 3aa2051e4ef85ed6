"""What all tests share: where bench and lab lie, the option --long, Ctrl-C, and how long each module took."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cluster.standing import Standing

# The bench and the lab are run from a checkout and never installed.
ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "ansible")]


def pytest_addoption(parser: pytest.Parser) -> None:
    """--long asks for all that a usual run keeps within a budget."""
    parser.addoption(
        "--long", action="store_true", help="Make all generated calls, and try other Hadoops and machines: some hours."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Note how long each module takes, and hear Ctrl-C also where a shell started this in the background."""
    from tests.times import Times

    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # else no command that a test starts would hear it
    config.pluginmanager.register(Times(), "times")
    with suppress(ImportError):  # the worker's environment has no hypothesis
        from hypothesis import settings

        # A limit for each example would fail on a busy machine for no reason.
        settings.register_profile("patient", deadline=None)
        settings.load_profile("patient")


@pytest.fixture(scope="session")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    """The cluster that modules of several folders share; it is started once somebody uses it."""
    from tests.cluster.standing import Standing

    made = Standing(tmp_path_factory.mktemp("standing"))
    try:
        yield made
    finally:
        made.end()


@pytest.fixture(scope="session")
def only_when_long(request: pytest.FixtureRequest) -> None:
    """Skip what takes a minute and more, where another test of the usual run tries nearly the same."""
    if not request.config.getoption("--long"):
        pytest.skip("it takes a minute and more, and others try nearly the same: --long")
