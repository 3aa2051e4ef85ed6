"""Training on several nodes, in a program's own loop.

>>> from nodewise.learning import Run                                         # doctest: +SKIP
>>> with Run(model, optimizer, (x, y), batch=256, epochs=10) as run:          # doctest: +SKIP
...     for a, b in run:
...         run.step(lambda: loss(model(a), b))

Started by itself the program trains in one process; started by `nodewise train` it is one of several. `GluonBlock`
lets a program of MXNet do so; it is imported when it is asked for, since others need no MXNet.
"""

from typing import Any

from learning.errors import LearningError
from learning.member.run import Run

__all__ = ["LearningError", "Run"]


def __getattr__(name: str) -> Any:
    if name == "GluonBlock":
        from learning.learners.gluon_block import GluonBlock

        return GluonBlock
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
