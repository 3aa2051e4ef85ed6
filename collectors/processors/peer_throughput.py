"""How quickly bytes come to this node from others, of which every run asks one: peer_throughput.py

    {peer: {"bytes_per_second": rate, "age_seconds": seconds since it was measured}}

One line of JSON, the newest 32 peers. A peer that does not answer keeps what it had, with its age, for a day. Without
any result there is no data: exit 3.
"""

from __future__ import annotations

import json
import os
import ssl
import sys
import time
from pathlib import Path

from collectors.peers import Memory, NoProbe, Roster, bytes_per_second, next_peer
from collectors.run import NO_DATA, node_name, service
from infosvc.wire.errors import InfoError


def main() -> int:
    """Ask the next node, print what is known."""
    told, now = os.environ, time.time()
    file, ca_file = Path(told["STATE_DIR"]) / "peers.json", told.get("NODEWISE_CA_FILE")
    memory = Memory.load(file)
    if memory.roster is None or memory.roster.is_old(now):
        memory.roster = Roster.read(service(), now)
    peer = next_peer(node_name(), memory.roster, memory.runs)
    memory.runs += 1
    memory.save(file)  # before anybody is asked: whoever keeps this run from its end is not asked by the next, too
    if peer is not None:
        tls = ssl.create_default_context(cafile=ca_file) if memory.roster.scheme == "https" else None
        try:
            memory.note(peer, bytes_per_second(memory.roster.addresses[peer], tls), time.time())
        except NoProbe as error:
            print(f"{peer}: {error}", file=sys.stderr)
        memory.save(file)
    results = memory.results(time.time())
    if not results:
        print("no other node was measured yet", file=sys.stderr)
        return NO_DATA
    print(json.dumps(results, separators=(",", ":")))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (InfoError, OSError) as error:
        sys.exit(f"peer_throughput: {error}")
