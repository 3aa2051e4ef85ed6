"""Both wheels, and an environment with each."""

from __future__ import annotations

import pytest

from tests.wheels.built import Environment, Wheels, build, environment


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    """Both, built once."""
    return build(tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="session")
def installed(wheels: Wheels, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with nodewise; who changes it leaves it so."""
    made = environment(tmp_path_factory.mktemp("installed") / "environment", with_libraries=True)
    made.install(wheels.main)
    return made


@pytest.fixture(scope="session")
def bare(wheels: Wheels, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with nodewise-client and nothing else at all."""
    made = environment(tmp_path_factory.mktemp("bare") / "environment", with_libraries=False)
    made.install(wheels.client)
    return made
