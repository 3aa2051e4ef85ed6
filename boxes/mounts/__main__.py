"""The mounter of a node: python3 -m boxes.mounts [FOLDER] [--idle SECONDS]."""

from __future__ import annotations

import argparse
import fcntl
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from boxes.mounts import place
from boxes.mounts.kernel import Apart
from boxes.mounts.mounter import MOST_CONNECTIONS, Mounter
from boxes.mounts.protocol import reason

_IDLE_SECONDS = 600.0
_ASKED_SECONDS, _AGAIN_SECONDS = 1.0, 0.02


def main() -> None:
    """Serve until a signal ends it; exit with 1 and a sentence when that cannot be."""
    reader = argparse.ArgumentParser(prog="nodewise-mounts", description=__doc__)
    reader.add_argument("folder", nargs="?", type=Path, default=place.folder(), help="where it listens")
    reader.add_argument("--idle", type=float, default=_IDLE_SECONDS, help="how long a mount stays that nobody uses")
    asked = reader.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        _serve(asked.folder.absolute(), asked.idle)
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        sys.exit(f"nodewise-mounts cannot serve {asked.folder}: {reason(error)}")


def _serve(folder: Path, idle_seconds: float) -> None:
    os.umask(0o077)
    folder.mkdir(mode=0o700, exist_ok=True)
    os.close(os.open("/dev/fuse", os.O_RDWR))  # better told now than to everybody who asks
    with place.open_own(folder) as own, (own / "lock").open("w") as lock:
        if not _take(lock.fileno()):
            sys.exit(f"nodewise-mounts cannot serve {folder}: another one does already")
        apart = Apart(folder)
        with _listener(place.socket_in(own)) as listener:
            print(f"nodewise-mounts serves {folder}", file=sys.stderr, flush=True)
            Mounter(listener, apart, idle_seconds).run()


def _take(lock: int) -> bool:
    """Take the lock of the folder; false when another one keeps it. Who asks whether one serves has it for a moment."""
    deadline = time.monotonic() + _ASKED_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(_AGAIN_SECONDS)
        else:
            return True


@contextmanager
def _listener(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        path.unlink(missing_ok=True)  # of one that was killed
        listener.bind(str(path))
        try:
            listener.listen(MOST_CONNECTIONS)
            yield listener
        finally:
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
