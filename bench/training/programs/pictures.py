"""`pictures.py FOLDER OUT SEED BATCH`: labelled images as arrays that AlexNet takes, to learn from and held out."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from jobs.engines.network import USUAL, network_named
from jobs.training.labelled_images import Labelled, batches, read_labelled, split
from jobs.training.train import preparation_of


def main(folder: str, out: str, seed: str, batch: str) -> None:
    """Files as those of the digits, named `pictures-`; MXNet's trainer takes whole batches alone."""
    learned, held = split(read_labelled(Path(folder)), int(seed))
    order = np.random.default_rng(int(seed)).permutation(len(learned.files))
    whole = learned.of(order[: len(order) // int(batch) * int(batch)])
    for name, images in (("train", whole), ("test", held)):
        _write(Path(out), name, images)


def _write(out: Path, name: str, images: Labelled) -> None:
    (arrays,) = batches(images.files, len(images.files), preparation_of(network_named(USUAL)))
    np.save(out / f"pictures-{name}-images.npy", arrays)
    np.save(out / f"pictures-{name}-labels.npy", images.numbers.astype(np.int64))


if __name__ == "__main__":
    main(*sys.argv[1:])
