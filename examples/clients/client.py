"""Writes a value and reads it back: client.py URL TOKEN_FILE NAME NODE VALUE. NAME must be registered.

An https service is trusted by the authority in the file that NODEWISE_CA_FILE names.
"""

from __future__ import annotations

import os
import sys

from nodewise.client import InfoClient, InfoError


def main(url: str, token_file: str, data_name: str, node_name: str, value: str) -> None:
    """Write, read, and print what was read."""
    with InfoClient.from_token_file(url, token_file, ca_file=os.environ.get("NODEWISE_CA_FILE")) as client:
        client.put_value(data_name, node_name, value)
        (datum,) = client.data(data_name, node=node_name)
    print(f"{datum.data_value}, {datum.age:.1f} s old, {datum.state}")


if __name__ == "__main__":
    if len(sys.argv) != 6:
        sys.exit("usage: client.py URL TOKEN_FILE NAME NODE VALUE")
    try:
        main(*sys.argv[1:])
    except InfoError as error:
        sys.exit(str(error))
