"""Prints those of the given host names whose address leads back to another name."""

import socket
import sys

for name in sys.argv[1:]:
    try:
        address = socket.gethostbyname(name)
        found = socket.gethostbyaddr(address)[0]
    except OSError as error:
        print(f"the address of {name} leads to no name ({error})")
        continue
    if found != name:
        print(f"{address} of {name} leads to {found}")
