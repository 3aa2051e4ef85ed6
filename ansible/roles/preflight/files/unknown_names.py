"""Prints those of the given host names that have no address by which another machine reaches them."""

import socket
import sys

for name in sys.argv[1:]:
    try:
        addresses = [found[4][0] for found in socket.getaddrinfo(name, None, socket.AF_INET)]
    except OSError:
        addresses = []
    if not addresses or any(address.startswith("127.") for address in addresses):
        print(name)
