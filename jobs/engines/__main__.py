"""`python -m jobs.engines check NETWORK.json`, in the worker's environment: loads a network and prints what it is.

{"fits": {"image": "3 x 224 x 224 float32 as NCHW", "row_bytes": 4096, "notes": [...]}}
{"refused": "..."}   one sentence, exit status 1
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from jobs.engines.loading import Loaded, load
from jobs.engines.network import Network
from jobs.errors import JobError
from jobs.images.rows import row_bytes

FILES = ("graph", "weights", "preparation", "labels")


def main(asked: str) -> int:
    """Exit status; `asked` is a network as JSON, with its batch."""
    body: dict[str, Any] = json.loads(asked)
    batch = body.pop("batch")
    body |= {name: Path(body[name]) for name in FILES if body.get(name)}
    try:
        print(json.dumps({"fits": _describe(load(Network(**body), batch))}), flush=True)
    except (JobError, ValueError) as error:
        print(json.dumps({"refused": str(error)}), flush=True)
        return 1
    return 0


def _describe(loaded: Loaded) -> dict[str, Any]:
    found = loaded.description
    return {"image": str(found.image), "row_bytes": row_bytes(loaded.tensors), "notes": list(found.notes)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
