"""The images of a folder of HDFS with their labels: sub-folders, a table of labels, or packs that have them inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jobs.errors import JobError
from jobs.images import labels, recordio
from jobs.images.labels import Label
from jobs.images.recordio import IDX, LEN, LST, REC, BadPack, Index, Records
from jobs.training_data.contents import Contents
from jobs.training_data.files import File, below, plain_path
from learning.errors import LearningError

Numbers = npt.NDArray[np.int64]

WHOLE = -1
"""The first byte of an image that is a file of its own."""
NO_LABEL = -1
_OF_A_PACK = (IDX, LST, LEN)


@dataclass(frozen=True)
class ImageTable:
    """A row for each image: number of its file, first byte of its record or WHOLE, bytes, label."""

    files: Sequence[File]
    file: Numbers
    first: Numbers
    length: Numbers
    label: Numbers

    def __len__(self) -> int:
        return len(self.file)

    @property
    def fingerprint(self) -> str:
        """Differs when the images, or their labels, are others."""
        told = blake2b("\n".join(f"{one.path} {one.length}" for one in self.files).encode(), digest_size=8)
        for column in (self.file, self.first, self.length, self.label):
            told.update(column.tobytes())
        return told.hexdigest()

    def of(self, chosen: Numbers) -> ImageTable:
        """Only the images of these rows."""
        return ImageTable(self.files, self.file[chosen], self.first[chosen], self.length[chosen], self.label[chosen])

    def name(self, row: int) -> str:
        """For people: the file, and where in it the image is."""
        path = self.files[self.file[row]].path
        return path if self.first[row] == WHOLE else f"{path} (the record at byte {self.first[row]})"


Row = tuple[int, int, int, int]
"""As the columns of a table."""


def read_table(contents: Contents, folder: str, table: str | None) -> ImageTable:
    """All images by path and place; LearningError when there are none, or one has no label."""
    found = contents.find(folder)
    files = [one for one in found if not one.is_folder]
    packs = [one for one in files if one.path.endswith(REC)]
    given = _read_labels(contents, table) if table else None
    if packs:
        rows = _PackRows(contents, folder, files, given).rows()
    elif given is not None:
        rows = _rows_of(folder, files, given)
    else:
        rows = _rows_by_folder(folder, found, files)
    if not rows:
        raise LearningError(f"{folder} holds no images", "`nodewise images load` or `pack` puts some there")
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    return ImageTable(files, *(np.ascontiguousarray(one) for one in columns))


def _read_labels(contents: Contents, table: str) -> Mapping[str, Label]:
    """By names below the folder; `table` is a file beside the program, or with hdfs:// one in HDFS."""
    try:
        if not table.startswith("hdfs://"):
            return labels.read(Path(table))
        path = plain_path(table)
        return labels.parse(path, contents.read_whole(path).decode())
    except UnicodeDecodeError:
        raise LearningError(f"{table} cannot be read (it is not text)", "name a table of labels") from None
    except JobError as error:
        raise LearningError(error.message, error.remedy) from None


def _rows_of(folder: str, files: Sequence[File], given: Mapping[str, Label]) -> list[Row]:
    names = {below(folder, file.path): number for number, file in enumerate(files)}
    _check_names(folder, names, given)
    return [_whole(files, number, given[name].number) for name, number in names.items()]


def _check_names(folder: str, names: Mapping[str, object], given: Mapping[str, Label]) -> None:
    if missing := next((name for name in sorted(given) if name not in names), None):
        raise LearningError(f"{folder} has no image {missing}, although the labels name it", "mend the labels")
    if other := next((name for name in sorted(names) if name not in given), None):
        raise LearningError(f"{folder}/{other} has no label", "add it to the labels, or take it out of the folder")


def _rows_by_folder(folder: str, found: Sequence[File], files: Sequence[File]) -> list[Row]:
    """The label is the place of the sub-folder among all, by name."""
    held = [below(folder, file.path).partition("/") for file in files]
    for file, (_, is_below, _) in zip(files, held, strict=True):
        if not is_below:
            raise LearningError(
                f"{file.path} lies in no sub-folder, whose name would be its label", "move it into one, or give labels"
            )
    classes = sorted({below(folder, one.path) for one in found if one.is_folder and "/" not in below(folder, one.path)})
    if empty := sorted(set(classes) - {label for label, _, _ in held}):
        raise LearningError(f"{folder}/{empty[0]} holds no images of its label", "put some there, or remove the folder")
    number = {name: at for at, name in enumerate(sorted({*classes, *(label for label, _, _ in held)}))}
    return [_whole(files, at, number[label]) for at, (label, _, _) in enumerate(held)]


def _whole(files: Sequence[File], number: int, label: int) -> Row:
    return number, WHOLE, files[number].length, label


class _PackRows:
    """The images in the packs of a folder, and those beside them."""

    def __init__(
        self, contents: Contents, folder: str, files: Sequence[File], given: Mapping[str, Label] | None
    ) -> None:
        self._contents = contents
        self._folder = folder
        self._files = files
        self._given = given
        self._paths = {file.path for file in files}

    def rows(self) -> list[Row]:
        """LearningError when a pack cannot be read, or an image has no label."""
        found: list[Row] = []
        seen: dict[str, object] = {}
        for number, file in enumerate(self._files):
            if file.path.endswith(REC):
                found += self._of_pack(number, file, seen)
            elif not file.path.endswith(_OF_A_PACK):
                found.append(self._alone(number, file, seen))
        if self._given is not None:
            _check_names(self._folder, seen, self._given)
        return found

    def _alone(self, number: int, file: File, seen: dict[str, object]) -> Row:
        name = below(self._folder, file.path)
        if self._given is None:
            raise LearningError(f"{file.path} lies beside packs, and has no label", "give the labels of all images")
        seen[name] = None
        return _whole(self._files, number, self._given[name].number if name in self._given else NO_LABEL)

    def _of_pack(self, number: int, file: File, seen: dict[str, object]) -> list[Row]:
        try:
            lst = self._beside(file.path, LST)
            records = recordio.records(self._beside(file.path, IDX))
            index = self._index(file, records, lst)
            marked = {} if self._given is not None else _marked(lst)
            labels = [marked.get(key, NO_LABEL) for key in records.keys.tolist()]
            return [self._row(number, file, index, at, label, seen) for at, label in enumerate(labels)]
        except BadPack as error:
            raise LearningError(f"{file.path} {error}") from None

    def _row(self, number: int, file: File, index: Index, at: int, label: int, seen: dict[str, object]) -> Row:
        name, first = index.name(at), int(index.offsets[at])
        if self._given is not None:
            seen[name] = None
            label = self._given[name].number if name in self._given else NO_LABEL
        elif label < 0:
            raise LearningError(
                f"{file.path} has no label for {name}", "pack the images with their labels.tsv, or give labels"
            )
        return number, first, index.place(at).end - first, label

    def _index(self, file: File, found: Records, lst: bytes) -> Index:
        beside = file.path.removesuffix(REC) + LEN
        if beside in self._paths:
            where = recordio.places(self._contents.read_whole(beside), found)
        else:
            places = [recordio.locate(self._reading(file), int(one)) for one in found.offsets]
            where = recordio.as_places(np.array(places, np.int64).reshape(-1, 4))
        return Index.of(found, where, lst, file.length)

    def _reading(self, file: File) -> recordio.ReadAt:
        def read(first: int, length: int) -> bytes:
            (content,) = self._contents.read([(file.path, first, min(length, file.length - first))])
            return content

        return read

    def _beside(self, path: str, kind: str) -> bytes:
        beside = path.removesuffix(REC) + kind
        if beside not in self._paths:
            raise LearningError(f"{path} has no {beside.rpartition('/')[2]} beside it", "copy the pack whole")
        return self._contents.read_whole(beside)


def _marked(lst: bytes) -> dict[int, int]:
    """The label of each key in a list; BadPack when one is not the number of a class."""
    found: dict[int, int] = {}
    for line in lst.decode("utf-8", "backslashreplace").split("\n"):
        parts = line.split("\t")
        if not line.strip():
            continue
        try:
            key, label = int(parts[0]), float(parts[1])
        except (ValueError, IndexError):
            raise BadPack(f"has an {LST} with {line[:60]!r}: write key, label, path") from None
        if len(parts) != 3 or not label.is_integer():
            raise BadPack(f"has an {LST} with {line[:60]!r}: images have one label, the number of their class")
        found[key] = int(label)
    return found
