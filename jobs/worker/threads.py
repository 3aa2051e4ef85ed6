"""How many threads the libraries of a container's program may start."""

from __future__ import annotations

from collections.abc import Mapping

ONE_THREAD: Mapping[str, str] = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MXNET_CPU_WORKER_NTHREADS": "1",
}
"""One in each library that computes: a container has as many processes as it has cores to use."""
