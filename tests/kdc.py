"""A real Kerberos, which runs without root."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from hadoop.local.kerberos import programs
from hadoop.local.kerberos.realm import Realm


@contextmanager
def running(realm: Realm, realms: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> Iterator[None]:
    """The KDC of a prepared realm, or of several whose settings the environment names, until the block ends."""
    kdc = subprocess.Popen(
        [str(programs.find("krb5kdc")), "-n", *(word for name in realms for word in ("-r", name))],
        env={**os.environ, **realm.environment_of_kdc(), **(environment or {})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    host, port = realm.kdc.split(":")
    try:
        deadline = time.monotonic() + 60
        while not _is_listening(host, int(port)):
            assert kdc.poll() is None and time.monotonic() < deadline, "the KDC does not answer"
            time.sleep(0.02)
        yield
    finally:
        kdc.kill()
        kdc.wait()


def _is_listening(host: str, port: int) -> bool:
    with suppress(OSError), socket.create_connection((host, port), timeout=1):
        return True
    return False
