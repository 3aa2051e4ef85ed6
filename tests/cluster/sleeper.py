"""An application master whose containers sleep: it notes in FOLDER/events what YARN tells, until FOLDER/stop is there.

Arguments: the site files' folder, the jars' folder, the user, FOLDER, and the nodes to sleep on. Several attempts may
write to the same events; each line is `word rest`, as `started container_1_1_01_2 127.0.9.11`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import HadoopHome, start
from hadoop.client.master import Heartbeat, MasterSession
from hadoop.client.yarn import Launch

SLEEP = Launch(["sleep", "3600.5"], {}, {}, 64, 1)


def main(conf_dir: str, jars: str, user: str, folder: str, *nodes: str) -> None:
    """Keep one container on each node; those of an earlier attempt count."""
    start(HadoopHome(Path(conf_dir), Path(jars), user))
    session = MasterSession(FileSystem())
    with (Path(folder) / "events").open("a", buffering=1) as events:
        kept = session.register("127.0.0.1", 1)
        for one in kept:
            print("kept", one.container_id, one.node_name, file=events)
        for number, node in enumerate(set(nodes) - {one.node_name for one in kept}, start=1):
            session.ask(number, node, SLEEP)
        while not (Path(folder) / "stop").exists():
            news = session.heartbeat(0.5)
            for granted in news.granted:
                session.launch(granted, SLEEP)
            for line in lines(news):
                print(line, file=events)
            time.sleep(0.1)
    session.leave(True, "slept")


def lines(news: Heartbeat) -> list[str]:
    """What to note of one exchange."""
    return [
        *(f"started {one.container_id} {one.node_name}" for one in news.granted),
        *(f"ended {one.container_id} {one.exit_status}" for one in news.ended),
        *(f"lost {node}" for node in news.lost_nodes),
    ]


if __name__ == "__main__":
    main(*sys.argv[1:])
