"""Files of a folder on this machine, in the place of HDFS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hadoop.errors import HadoopError
from jobs.training_data.files import File, Span, is_hidden


class Shelf:
    """Notes which bytes are read; `hosts` says where the blocks of files lie, and nobody can say without it."""

    def __init__(self, root: Path, hosts: Mapping[str, Sequence[Span]] | None = None) -> None:
        self._root = root
        self._hosts = hosts
        self.read_at: list[tuple[str, int, int | None]] = []

    def read(self, path: str, offset: int, length: int | None) -> bytes:
        self.read_at.append((path, offset, length))
        content = self._at(path).read_bytes()
        return content if length is None else content[offset : offset + length]

    def exists(self, path: str) -> bool:
        return self._at(path).exists()

    def find(self, path: str) -> list[File]:
        if not self.exists(path):
            raise FileNotFoundError(path)
        found = [self._at(path)] if self._at(path).is_file() else list(self._at(path).rglob("*"))
        names = [(f"/{one.relative_to(self._root)}", one) for one in found]
        listed = [File(name, one.stat().st_size, one.is_dir(), 3) for name, one in names]
        return sorted(one for one in listed if not is_hidden(path, one.path))

    def blocks(self, file: File) -> Sequence[Span]:
        if self._hosts is None:
            raise HadoopError("the NameNode does not answer")
        return self._hosts[file.path]

    def _at(self, path: str) -> Path:
        return self._root / path.lstrip("/")
