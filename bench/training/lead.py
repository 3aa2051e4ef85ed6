"""`python -m bench.training.lead FOLDER MEMBERS HOST`: leads a run as an application master does, and may be killed.

Its journal is a file of the folder, so that it can be started again: it is a later attempt then. Members are not its
children, and go on without it.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from jobs.application.listener import Listener
from jobs.application.status import JobStatus
from jobs.kinds.train.hearing import RunHearing
from learning.lead.leader import Leader
from locality.training.generation_events import Event, from_body, to_body
from locality.training.generations import MemberRules

HOST = "127.0.0.1"
TOKEN_FILE = "token"  # noqa: S105 the name of its file
TICK_SECONDS = 0.05
STATUS = JobStatus("bench", "running", 1, 0, 0, 0, 0.0, None, ())


def main(folder: Path, members: int, host: str) -> None:
    """Until it is killed."""
    journal = folder / "journal"
    journal.touch()
    events = [from_body(*json.loads(line)) for line in journal.read_text().splitlines()]
    attempt = 1 + max((event.attempt for event in events), default=0)
    with journal.open("a") as sink:

        def record(event: Event) -> None:
            sink.write(json.dumps([event.kind, to_body(event)]) + "\n")
            sink.flush()

        leader = Leader(
            attempt, MemberRules(least=1, most=members, gather_seconds=60.0), record, time.monotonic, events
        )
        listener = Listener(host, (folder / TOKEN_FILE).read_text())
        listener.serve(RunHearing(leader), lambda: STATUS, str)
        (folder / "address.new").write_text(listener.address)
        (folder / "address.new").replace(folder / "address")
        while True:
            leader.tick()
            time.sleep(TICK_SECONDS)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
