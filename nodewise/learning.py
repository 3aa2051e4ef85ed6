"""Training on several nodes, in a program's own loop.

>>> from nodewise.learning import Run                                         # doctest: +SKIP
>>> with Run(model, optimizer, (x, y), batch=256, epochs=10) as run:          # doctest: +SKIP
...     for a, b in run:
...         run.step(lambda: loss(model(a), b))

Started by itself the program trains in one process; started by `nodewise train` it is one of several. `GluonBlock`
lets a program of MXNet do so, `hdfs_images` and `hdfs_parquet` make data sets of what lies in HDFS.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from learning.errors import LearningError
from learning.member.run import Run

if TYPE_CHECKING:
    from jobs.training_data.images import hdfs_images
    from jobs.training_data.parquet import hdfs_parquet
    from learning.learners.gluon_block import GluonBlock

_APART = {
    "GluonBlock": "learning.learners.gluon_block",
    "hdfs_images": "jobs.training_data.images",
    "hdfs_parquet": "jobs.training_data.parquet",
}
"""They need more libraries than PyTorch, so they are imported when they are used."""

__all__ = ["GluonBlock", "LearningError", "Run", "hdfs_images", "hdfs_parquet"]


def __getattr__(name: str) -> Any:
    if name not in _APART:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_APART[name]), name)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{name} needs {error.name}, which this Python lacks: install it, or take that of members (--worker-python)"
        ) from None
