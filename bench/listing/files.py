"""Many small files with real blocks: python -m bench.listing.files CONF_DIR JARS USER FOLDER COUNT"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jpype

from hadoop.client.jvm import HadoopHome, configuration, java, start

WRITERS = 16
FILES_PER_FOLDER = 5000
MOST_BYTES = 1000


def write(folder: str, count: int) -> None:
    """Make `count` files of 1 to 1000 bytes, 5,000 in each folder, by several writers at once."""
    conf = configuration()
    # The last block is confirmed within milliseconds; asking again only after 400 ms is what would take the time.
    conf.setInt("dfs.client.block.write.locateFollowingBlock.initial.delay.ms", 10)
    filesystem, path = java("org.apache.hadoop.fs.FileSystem").newInstance(conf), java("org.apache.hadoop.fs.Path")

    def one(number: int) -> None:
        stream = filesystem.create(path(f"{folder}/{number // FILES_PER_FOLDER:03}/{number:06}"))
        stream.write(jpype.JArray(jpype.JByte)(b"x" * (1 + number % MOST_BYTES)))
        stream.close()

    with ThreadPoolExecutor(WRITERS) as writers:
        for _ in writers.map(one, range(count)):
            pass


if __name__ == "__main__":
    start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
    write(sys.argv[4], int(sys.argv[5]))
