"""Images of HDFS as a data set: decoded as a network sees them, each with the number of its label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from jobs.images import recordio
from jobs.images.decoding import decode, prepare
from jobs.images.preparation import CHANNELS, GREY, GREY_MEAN, GREY_STD, MEAN, RGB, STD, Preparation, usual_resize
from jobs.images.recordio import BadPack
from jobs.training_data.contents import Contents
from jobs.training_data.files import Files, HdfsFiles, plain_path
from jobs.training_data.image_table import WHOLE, read_table
from jobs.training_data.places import find_places
from learning.errors import LearningError

Batch = tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]

STOP, SKIP = "stop", "skip"
TRIED_AT_ONCE = 64
"""Images in memory while broken ones are looked for."""


def hdfs_images(
    folder: str,
    size: int | tuple[int, int] = 224,
    *,
    labels: str | None = None,
    broken: str = STOP,
    resize: int | None = None,
    channels: str = RGB,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
) -> HdfsImages:
    """The images below a folder of HDFS, or in the packs there; LearningError says what is wrong with them.

    Each is float32 of (channels, height, width), scaled as ImageNet's networks want it, and an int64, its label.

    size       height and width in pixels, or the side of a square, cut from the middle
    labels     a table as labels.tsv beside the program, or at hdfs://; else sub-folders are labels, or packs have them
    broken     "stop" ends the run at an image that cannot be decoded, "skip" tries all of them before it begins
    resize     the short side of the whole image before the middle is cut out; by default as ImageNet's networks do it
    mean, std  of each channel, of pixels from 0 to 1
    """
    if broken not in (STOP, SKIP):
        raise LearningError(f"broken is {broken!r}", f"give {STOP!r} or {SKIP!r}")
    plain = plain_path(folder)
    crop = (size, size) if isinstance(size, int) else tuple(size)
    if len(crop) != 2 or not all(isinstance(one, int) and one > 0 for one in (*crop, resize or 1)):
        raise LearningError(f"size is {size!r} and resize {resize!r}", "give pixels from 1 on, as 224 or (224, 192)")
    if channels not in CHANNELS:
        raise LearningError(f"channels are {channels!r}", f"give one of {', '.join(CHANNELS)}")
    usual = (GREY_MEAN, GREY_STD) if channels == GREY else (MEAN, STD)
    how = Preparation(
        crop,
        resize or usual_resize(crop),
        tuple(usual[0] if mean is None else mean),
        tuple(usual[1] if std is None else std),
        channels=channels,
    )
    if {len(how.mean), len(how.std)} != {len(usual[0])} or not all(one > 0 for one in how.std):
        raise LearningError(
            f"mean is {list(how.mean)} and std {list(how.std)}",
            f"give {len(usual[0])} of each for the channels {channels}, with each std above 0",
        )
    return HdfsImages(HdfsFiles(), plain, how, labels, is_broken_skipped=broken == SKIP)


class HdfsImages:
    """A data set for `Run`; `hdfs_images` makes one."""

    reads_ahead = True

    def __init__(
        self, files: Files, folder: str, how: Preparation, labels: str | None, *, is_broken_skipped: bool = False
    ) -> None:
        self._contents = Contents(files)
        self._how = how
        self._table = read_table(self._contents, folder, labels)
        if is_broken_skipped:
            self._skip_broken(folder)
        self.fingerprint = blake2b(f"{self._table.fingerprint} {how}".encode(), digest_size=8).hexdigest()

    def __len__(self) -> int:
        return len(self._table)

    def __getitem__(self, number: int) -> tuple[npt.NDArray[np.float32], int]:
        images, labels = self.batch_of([number])
        return images[0], int(labels[0])

    @property
    def labels(self) -> npt.NDArray[np.int64]:
        """The label of each image."""
        return self._table.label

    @property
    def how(self) -> Preparation:
        """How images become what a network sees."""
        return self._how

    def batch_of(self, numbers: Sequence[int]) -> Batch:
        """Images of shape (number, channels, height, width), and labels; LearningError names a broken image."""
        images = np.empty((len(numbers), len(self._how.mean), *self._how.crop), np.float32)
        for pixels, place in zip(self.decode(numbers), images, strict=True):
            prepare(pixels, self._how, place)
        return images, self._table.label[np.asarray(numbers, np.int64)]

    def decode(self, numbers: Sequence[int]) -> Iterator[npt.NDArray[np.uint8]]:
        """Whole images as pixels (height, width, 3) in RGB, one after the other; LearningError as above."""
        rows = np.asarray(numbers, np.int64)
        for row, content in zip(rows.tolist(), self._read(rows), strict=True):
            try:
                yield self._decode(row, content)
            except ValueError as error:
                raise LearningError(
                    f"{self._table.name(row)} {_without_subject(error)}",
                    f'take it out of the folder, or list the images with broken="{SKIP}"',
                ) from None

    def stored(self, numbers: Sequence[int]) -> Iterator[bytes]:
        """Images as they are stored, without the records of packs; LearningError when a record is damaged."""
        rows = np.asarray(numbers, np.int64)
        for row, content in zip(rows.tolist(), self._read(rows), strict=True):
            try:
                yield self._unpack(row, content)
            except BadPack as error:
                raise LearningError(f"{self._table.name(row)} {error}", "pack the images again") from None

    def path(self, number: int) -> str | None:
        """The file that an image is, None of an image in a pack."""
        return None if self._table.first[number] != WHOLE else self._table.files[self._table.file[number]].path

    def places_of(self, numbers: Sequence[int]) -> list[tuple[str, ...]]:
        """The nodes that hold each of these images."""
        some = self._table.of(np.asarray(numbers, np.int64))
        return find_places(self._contents.files, some.files, some.file, np.maximum(some.first, 0))

    def _read(self, rows: npt.NDArray[np.int64]) -> list[bytes]:
        some = self._table.of(rows)
        columns = zip(some.file.tolist(), some.first.tolist(), some.length.tolist(), strict=True)
        return self._contents.read(
            [(some.files[file].path, None if first == WHOLE else first, length) for file, first, length in columns]
        )

    def _decode(self, row: int, content: bytes) -> npt.NDArray[np.uint8]:
        return decode(self._unpack(row, content), self._how.needed_side)

    def _unpack(self, row: int, content: bytes) -> bytes:
        first = int(self._table.first[row])
        if first == WHOLE:
            return content
        return recordio.read_image(lambda at, length: content[at - first :][:length], first)

    def _skip_broken(self, folder: str) -> None:
        """Leave out what cannot be decoded, which is tried; LearningError when nothing is left."""
        whole: list[int] = []
        for begin in range(0, len(self._table), TRIED_AT_ONCE):
            rows = np.arange(begin, min(begin + TRIED_AT_ONCE, len(self._table)))
            whole += [
                row
                for row, content in zip(rows.tolist(), self._read(rows), strict=True)
                if self._is_whole(row, content)
            ]
        if not whole:
            raise LearningError(f"none of the {len(self._table)} images in {folder} can be decoded", "load others")
        self._table = self._table.of(np.array(whole, np.int64))

    def _is_whole(self, row: int, content: bytes) -> bool:
        try:
            self._decode(row, content)
        except ValueError as error:
            print(f"nodewise: {self._table.name(row)} is skipped: {error}", flush=True)
            return False
        return True


def _without_subject(error: ValueError) -> str:
    """What is wrong, behind the name of the image."""
    return str(error) if isinstance(error, BadPack) else f"is broken ({error})"
