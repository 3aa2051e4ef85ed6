"""Takes GPUs and becomes a program that has them until it ends.

    python3 -m boxes.gpus '{"count": 1}' /opt/env=part.sqfs -- /opt/env/bin/python -m program

The first word is a `Wanted` in JSON, the others are those of boxes.mounting. Open files of the program stand for the
locks of its cards, so that the kernel gives them back when it has ended, with what it has left behind.
"""

from __future__ import annotations

import fcntl
import json
import sys
from collections.abc import Sequence

from boxes import mounting
from boxes.box import BoxError
from boxes.gpus.cards import Wanted
from boxes.gpus.taking import take_cards

_ABOVE = 10
"""What starts a program in an environment may use the descriptors below."""


def main(words: Sequence[str]) -> None:
    """Wait for the cards and become the program; exit with 125 and a sentence when that cannot be."""
    try:
        with take_cards(Wanted(**json.loads(words[0])), say=_say) as mine:
            for lock in mine.locks:
                fcntl.fcntl(lock, fcntl.F_DUPFD, _ABOVE)  # which a program inherits
            _say(f"GPUs: {mine.text}")
            mounting.become(words[1:], mine.variables, mine.devices)
    except (BoxError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(125)


def _say(what: str) -> None:
    print(what, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
