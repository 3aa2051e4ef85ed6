"""What a job does first, timed: python -m bench.reading.where CONF_DIR JARS USER FOLDER

Prints a JSON object: seconds until the blocks are known and until each picture's place is, and the pictures.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from hadoop.client.filesystem import FileSystem
from hadoop.client.jvm import HadoopHome, start
from jobs.kinds.classify.listing import ImageListing
from locality.types import Part


def main() -> None:
    """As the module says."""
    start(HadoopHome(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
    pictures, begun = ImageListing(FileSystem()), time.monotonic()
    blocks = pictures.blocks(sys.argv[4])
    known = time.monotonic() - begun
    found = [picture.to_json() for block in blocks for picture in pictures.of(Part(block, 0, block.items))]
    placed = time.monotonic() - begun
    print(json.dumps({"known_seconds": known, "placed_seconds": placed, "blocks": len(blocks), "pictures": found}))


if __name__ == "__main__":
    main()
