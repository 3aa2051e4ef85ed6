"""Prints those of the given ports that nobody could listen on now."""

import socket
import sys

for port in map(int, sys.argv[1:]):
    with socket.socket() as probe:
        # What a closed connection leaves behind for a minute is nobody's.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
            probe.listen(1)
        except OSError:
            print(port)
