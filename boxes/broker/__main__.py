"""The broker's command, which systemd calls for each connection: python3 -I -S broker.pyz [--settings FILE]"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
from pathlib import Path

from boxes.broker.frames import SOCKET
from boxes.broker.session import serve
from boxes.broker.settings import Settings

SETTINGS = Path("/etc/nodewise/broker.json")
WAITING = 64


def main() -> int:
    """Serve the connection that is standard input, or with --listen one after another, each by a process of its own."""
    parser = argparse.ArgumentParser(
        prog="broker.pyz",
        description="Runs boxes of Docker for containers of YARN.",
        epilog="example: broker.pyz --listen --settings /etc/nodewise/broker.json",
    )
    parser.add_argument("--settings", type=Path, default=SETTINGS, help="JSON with what an operator has settled")
    parser.add_argument(
        "--listen", nargs="?", const=SOCKET, metavar="SOCKET", help=f"listen, without systemd (default: {SOCKET})"
    )
    asked = parser.parse_args()
    try:
        settings = Settings.load(asked.settings)
    except (OSError, ValueError, TypeError) as error:
        print(f"{asked.settings} cannot be used: {error}", file=sys.stderr)
        return 1
    if asked.listen is None:
        with socket.socket(fileno=0) as connection:
            serve(connection, settings)
    else:
        _listen(asked.listen, settings)
    return 0


def _listen(path: str, settings: Settings) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    Path(path).unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        mask = os.umask(0o177)
        listener.bind(path)
        os.umask(mask)
        listener.listen(WAITING)
        print(f"listening at {path}", flush=True)
        while True:
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    listener.close()
                    serve(connection, settings)
                    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
