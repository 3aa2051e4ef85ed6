"""Stores a folder in HDFS, by many writers at once: python -m bench.reading.store CONF_DIR JARS USER FROM TO"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jpype

from hadoop.client.jvm import HadoopHome, configuration, java, start

WRITERS = 16


def store(directory: Path, folder: str) -> None:
    """Every file of the directory to the same name in the folder."""
    conf = configuration()
    # The last block is confirmed within milliseconds; asking again only after 400 ms is what would take the time.
    conf.setInt("dfs.client.block.write.locateFollowingBlock.initial.delay.ms", 10)
    filesystem, path = java("org.apache.hadoop.fs.FileSystem").newInstance(conf), java("org.apache.hadoop.fs.Path")

    def one(file: Path) -> None:
        stream = filesystem.create(path(f"{folder}/{file.name}"))
        stream.write(jpype.JArray(jpype.JByte)(file.read_bytes()))
        stream.close()

    with ThreadPoolExecutor(WRITERS) as writers:
        for _ in writers.map(one, sorted(directory.iterdir())):
            pass


if __name__ == "__main__":
    start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
    store(Path(sys.argv[4]), sys.argv[5])
