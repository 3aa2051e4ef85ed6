"""Images packed as MXNet's im2rec does it: RecordIO (.rec), its index (.idx) and its list (.lst), and lengths (.len).

A record is, little endian: the magic word; a word of part (3 bits) and length (29 bits); that many bytes; zeros up to a
multiple of four. The bytes are 24 of header (labels that follow, one label, key, 0), those labels, then the image.
Where the magic word itself stands in them, at a multiple of four, it is left out and the record is split there: its
parts 1, 2, 2 ... 3 follow one another, each with a head of its own. An unsplit record is part 0.

.idx has lines `key, first byte of the record`, .lst `key, label ..., path`, and .len, ours, `key, first byte of the
image itself, its bytes`; tabs between. MXNet reads the first three, and nothing of it looks at the fourth.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

REC, IDX, LST, LEN = ".rec", ".idx", ".lst", ".len"
MAGIC = 0xCED7230A
MOST_BYTES = (1 << 29) - 1
"""What the length of a record can say."""

_MAGIC_BYTES = struct.pack("<I", MAGIC)
_HEAD = struct.Struct("<II")
_HEADER = struct.Struct("<IfQQ")
_WHOLE, _FIRST, _MIDDLE, _LAST = range(4)
HEAD_BYTES = _HEAD.size + _HEADER.size

Numbers: TypeAlias = npt.NDArray[np.int64]
ReadAt = Callable[[int, int], bytes]
"""(first byte, how many) -> those bytes, fewer at the end of the file."""


class BadPack(ValueError):
    """A pack that cannot be read as it stands; the text goes on from its name."""


class Place(NamedTuple):
    """Where an image is: its first byte, its length, the end of its record; of a split one the bytes are no range."""

    start: int
    length: int
    end: int
    is_split: bool


class Records(NamedTuple):
    """Keys and first bytes of the records of a pack, by first byte."""

    keys: Numbers
    offsets: Numbers


class Places(NamedTuple):
    """Column by column the `Place` of each record; `split` has the numbers of those records that are split."""

    starts: Numbers
    lengths: Numbers
    ends: Numbers
    split: frozenset[int]


def record(key: int, label: float, image: bytes) -> bytes:
    """One record with its head and padding, split as MXNet splits; ValueError when it would be too long."""
    content = _HEADER.pack(0, label, key, 0) + image
    if len(content) > MOST_BYTES:
        raise ValueError(f"{len(content)} bytes do not fit into a record of {MOST_BYTES}")
    cuts = _marks(content)
    begins, ends = [0, *(cut + 4 for cut in cuts)], [*cuts, len(content)]
    parts = [_WHOLE] if not cuts else [_FIRST, *[_MIDDLE] * (len(cuts) - 1), _LAST]
    return b"".join(_part(*one, content) for one in zip(parts, begins, ends, strict=True))


def is_whole(image: bytes) -> bool:
    """Whether its record has its bytes in one piece, so that they are a range of the file."""
    return not _marks(image)  # the header before it is a multiple of four


def locate(read_at: ReadAt, offset: int) -> Place:
    """The image of the record that begins at `offset`; BadPack when none begins there."""
    head = read_at(offset, HEAD_BYTES)
    part, length = _head(head, offset)
    if part == _WHOLE:
        skipped = _header_bytes(head[_HEAD.size :], length, offset)
        start = offset + _HEAD.size + skipped
        return Place(start, length - skipped, _pad(start + length - skipped, offset), is_split=False)
    parts = list(_parts(read_at, offset))
    begin, length = parts[-1]
    return Place(offset, len(read_image(read_at, offset)), _pad(begin + length, offset), is_split=True)


def read_image(read_at: ReadAt, offset: int) -> bytes:
    """The image of the record that begins at `offset`, put together again if it is split."""
    content = _MAGIC_BYTES.join(read_at(begin, length) for begin, length in _parts(read_at, offset))
    return content[_header_bytes(content, len(content), offset) :]


def records(idx: bytes) -> Records:
    """What an .idx says; BadPack when that cannot be read."""
    keys, offsets = _columns(idx, 2, IDX)
    order = np.argsort(offsets, kind="stable")
    return Records(keys[order], offsets[order])


def places(lengths: bytes, of: Records) -> Places:
    """What a .len says, without reading the .rec; BadPack when it belongs to another .idx."""
    keys, starts, sizes = _columns(lengths, 3, LEN)
    order = np.argsort(starts, kind="stable")
    keys, starts, sizes = keys[order], starts[order], sizes[order]
    heads = starts - of.offsets if len(starts) == len(of.offsets) else np.array([-1])
    if not np.array_equal(keys, of.keys) or (heads < HEAD_BYTES).any() or (heads % 4).any():
        raise BadPack(f"has a {LEN} that belongs to another {IDX}: delete the {LEN}, it only saves time")
    return Places(starts, sizes, of.offsets + (starts + sizes - of.offsets + 3) // 4 * 4, frozenset())


def as_places(table: Numbers) -> Places:
    """A row for each `locate`d image, as columns; shape (images, 4)."""
    starts, lengths, ends = (np.ascontiguousarray(table[:, column]) for column in range(3))
    return Places(starts, lengths, ends, frozenset(np.flatnonzero(table[:, 3]).tolist()))


@dataclass(frozen=True)
class Index:
    """The images of one pack in the order of their bytes, about 100 bytes each."""

    offsets: Numbers
    places: Places
    names: Names

    @classmethod
    def of(cls, found: Records, where: Places, lst: bytes, size: int) -> Index:
        """BadPack unless the records are all that a .rec of `size` bytes holds: an image must not be forgotten."""
        ends = np.concatenate([[0], where.ends])
        begins = np.concatenate([found.offsets, [size]])
        wrong = np.flatnonzero(ends != begins)
        if len(wrong):
            raise BadPack(
                f"has an {IDX} that does not name what it holds from byte {min(ends[wrong[0]], begins[wrong[0]])} on: "
                f"make the {IDX} again, or pack the images again"
            )
        return cls(found.offsets, where, Names.of(lst, found))

    def __len__(self) -> int:
        return len(self.offsets)

    def first_at(self, byte: int) -> int:
        """The number of the first image whose record begins at this byte or behind it."""
        return int(np.searchsorted(self.offsets, byte))

    def place(self, number: int) -> Place:
        """Where an image is."""
        starts, lengths, ends, split = self.places
        return Place(int(starts[number]), int(lengths[number]), int(ends[number]), number in split)

    def name(self, number: int) -> str:
        """Its path in the .lst, and `@` and the first byte of its record where that is not its own, or not known."""
        name, is_own = self.names[number]
        return name if is_own else f"{name}@{self.offsets[number]}"


@dataclass(frozen=True)
class Names:
    """For each record the range of its path in the text of the .lst, empty where that has none."""

    text: bytes
    begins: Numbers
    ends: Numbers
    shared: frozenset[int]

    @classmethod
    def of(cls, lst: bytes, found: Records) -> Names:
        """The names of these records; a key that the list has twice, or not at all, brings no name."""
        keys, begins, ends = _parse_list(lst)
        order = np.argsort(keys, kind="stable")
        keys, begins, ends = (np.append(column[order], 0) for column in (keys, begins, ends))
        keys = keys[:-1]
        at, behind = (np.searchsorted(keys, found.keys, side) for side in ("left", "right"))
        once = behind - at == 1
        begins, ends = np.where(once, begins[at], 0), np.where(once, ends[at], 0)
        return cls(lst, begins, ends, _find_shared(lst, begins, ends))

    def __getitem__(self, number: int) -> tuple[str, bool]:
        """The name, and whether no other record has it."""
        text = self.text[self.begins[number] : self.ends[number]]
        return text.decode("utf-8", "backslashreplace"), number not in self.shared


def _find_shared(text: bytes, begins: Numbers, ends: Numbers) -> frozenset[int]:
    """The records without a name, and those whose name another one has, too (told by hash, so at worst some more)."""
    hashes = np.fromiter((hash(text[a:b]) for a, b in zip(begins, ends, strict=True)), np.int64, len(begins))
    _, which, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    return frozenset(np.flatnonzero((counts[which] > 1) | (begins == ends)).tolist())


def _parse_list(lst: bytes) -> tuple[Numbers, Numbers, Numbers]:
    """Of each line of a list the key, and where the path begins and ends: behind the last tab, at the end."""
    text = np.frombuffer(lst, np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    if not lst.endswith(b"\n"):
        ends = np.append(ends, len(lst))
    begins = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    begins, ends = begins[ends > begins], ends[ends > begins]
    tabs = np.append(np.flatnonzero(text == ord("\t")), len(lst))
    first, last = tabs[np.searchsorted(tabs, begins)], tabs[np.searchsorted(tabs, ends) - 1]
    if (first >= ends).any():
        line = int(np.flatnonzero(first >= ends)[0])
        raise BadPack(f"has an {LST} without tabs in {lst[begins[line] : ends[line]][:60]!r}: write key, label, path")
    try:
        keys = np.fromiter((int(lst[a:b]) for a, b in zip(begins, first, strict=True)), np.int64, len(begins))
    except ValueError as error:
        raise BadPack(f"has an {LST} with a key that is not a number ({error})") from None
    return keys, last + 1, ends


def _columns(text: bytes, count: int, kind: str) -> list[Numbers]:
    if not text.strip():
        return [np.empty(0, np.int64)] * count
    try:
        table = np.loadtxt(io.BytesIO(text), np.int64, comments=None, delimiter="\t", ndmin=2)
    except ValueError as error:
        raise BadPack(f"has an {kind} that cannot be read ({error}): each line is {count} numbers and tabs") from None
    if table.shape[1] != count:
        raise BadPack(f"has an {kind} with {table.shape[1]} numbers in a line instead of {count}")
    return [np.ascontiguousarray(table[:, column]) for column in range(count)]


def _marks(content: bytes) -> list[int]:
    """Where the magic word stands at a multiple of four."""
    words = np.frombuffer(content[: len(content) // 4 * 4], "<u4")
    found: list[int] = (np.flatnonzero(words == MAGIC) * 4).tolist()
    return found


def _part(part: int, begin: int, end: int, content: bytes) -> bytes:
    length = end - begin
    return b"".join((_HEAD.pack(MAGIC, part << 29 | length), content[begin:end], bytes(-length % 4)))


def _parts(read_at: ReadAt, offset: int) -> Iterator[tuple[int, int]]:
    """First byte and length of each part of a record."""
    begin, expected = offset, (_WHOLE, _FIRST)
    while True:
        part, length = _head(read_at(begin, _HEAD.size), begin)
        if part not in expected:
            raise BadPack(f"holds a record at byte {offset} whose parts do not follow one another")
        yield begin + _HEAD.size, length
        if part in (_WHOLE, _LAST):
            return
        begin, expected = _pad(begin + _HEAD.size + length, offset), (_MIDDLE, _LAST)


def _head(content: bytes, offset: int) -> tuple[int, int]:
    """Part and length of what begins at `offset`."""
    magic, word = _HEAD.unpack_from(content) if len(content) >= _HEAD.size else (0, 0)
    if magic != MAGIC:
        raise BadPack(f"holds no record at byte {offset}, where one should begin: it is damaged, or its {IDX} is wrong")
    return word >> 29, word & MOST_BYTES


def _header_bytes(content: bytes, length: int, offset: int) -> int:
    """Bytes of header and labels before the image in a record of this length."""
    labels = _HEADER.unpack_from(content)[0] if len(content) >= _HEADER.size else 0
    skipped: int = _HEADER.size + 4 * labels
    if length < skipped:
        raise BadPack(f"holds a record of {length} bytes at byte {offset}, too short for an image of MXNet's")
    return skipped


def _pad(end: int, offset: int) -> int:
    return end + (offset - end) % 4
