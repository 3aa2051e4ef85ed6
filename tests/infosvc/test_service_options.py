"""How long commands wait for the service."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from infosvc.wire.errors import InvalidInput, Unreachable
from infosvc.wire.service_options import ServiceAddress, service_timeout


@pytest.mark.parametrize(("said", "seconds"), [("2.5", 2.5), ("90", 90.0), ("", 7.0), (None, 7.0)])
def test_the_environment_says_how_long(monkeypatch: pytest.MonkeyPatch, said: str | None, seconds: float) -> None:
    monkeypatch.delenv("NODEWISE_SERVICE_TIMEOUT", raising=False)
    if said is not None:
        monkeypatch.setenv("NODEWISE_SERVICE_TIMEOUT", said)

    assert service_timeout(7.0) == seconds


@pytest.mark.parametrize("said", ["0", "-1", "nan", "inf", "1e9", "soon", " "])
def test_what_is_no_such_number_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setenv("NODEWISE_SERVICE_TIMEOUT", said)

    with pytest.raises(InvalidInput, match=r"^NODEWISE_SERVICE_TIMEOUT is '.*', and must be a number of"):
        service_timeout(7.0)


def test_a_command_s_client_waits_no_longer_than_that(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NODEWISE_SERVICE_TIMEOUT", "0.1")
    monkeypatch.setattr("infosvc.wire.service_options.DEFAULT_TIMEOUT", 300.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = ServiceAddress(f"http://127.0.0.1:{silent.getsockname()[1]}").client(tmp_path)
        begun = time.monotonic()
        with pytest.raises(Unreachable, match="timed out"):
            client.nodes()

    assert time.monotonic() - begun < 200
