"""Training on several nodes, in a program's own loop.

>>> from nodewise.learning import Run                                         # doctest: +SKIP
>>> with Run(model, optimizer, (x, y), batch=256, epochs=10) as run:          # doctest: +SKIP
...     for a, b in run:
...         run.step(lambda: loss(model(a), b))

Started by itself the program trains in one process; started by `nodewise train` it is one of several.
"""

from learning.errors import LearningError
from learning.member.run import Run

__all__ = ["LearningError", "Run"]
