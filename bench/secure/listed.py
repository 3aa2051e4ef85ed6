"""A program that lists files with their blocks, once: python -m bench.secure.listed CONF_DIR JARS USER FOLDER

Prints a JSON object: how many `files` there are, and the `seconds` of the listing, its JVM and log-in left out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bench.listing.ways import time_call
from hadoop.client.blocks import list_files
from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import HadoopHome, start

if __name__ == "__main__":
    start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
    files, folder = FileSystem(), sys.argv[4]
    seconds, found = time_call(lambda: sum(1 for _ in list_files(files, folder)) if files.exists(folder) else 0)
    print(json.dumps({"files": found, "seconds": seconds}))
