"""A kind of job that divides files: the row of each says how long it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from hadoop.client.blocks import list_files
from hadoop.client.filesystem import FileSystem
from hadoop.client.yarn import Launch
from jobs.application.coordinator import Attempt, Seat
from jobs.application.master import master_file
from jobs.division.readings import Program
from jobs.itemwork.coordinator import ItemCoordinator
from jobs.itemwork.messages import Item
from jobs.itemwork.settings import ItemSettings
from locality.types import Block, Part

COLUMNS = [("path", pa.string()), ("length", pa.int64()), ("error", pa.string())]


@dataclass(frozen=True, kw_only=True)
class LengthSettings(ItemSettings):
    row_bytes: int = 500

    @property
    def program(self) -> Program:
        return Program("lengths", 4)


class Files:
    """Each file is an item, and a block of its own."""

    def __init__(self, filesystem: FileSystem) -> None:
        self._filesystem = filesystem

    def blocks(self, input_path: str) -> Sequence[Block]:
        return [Block(file.path, 1, file.size_bytes, file.hosts()) for file in list_files(self._filesystem, input_path)]

    def of(self, part: Part) -> Sequence[Item]:
        return [Item(part.block.name, part.block.name, None, part.block.size_bytes)]


class Lengths(ItemCoordinator):
    unit = "files"

    def __init__(self, attempt: Attempt) -> None:
        super().__init__(attempt, LengthSettings.from_json(attempt.spec.settings), Files(attempt.filesystem))

    def launches(self) -> Callable[[Seat], Launch]:
        spec, python = self._attempt.spec, self._settings.worker_python
        files = {"worker.py": f"{spec.staging}/worker.py", "master.json": master_file(spec)}
        return lambda seat: Launch([python, "worker.py", spec.token, seat.node_name], {}, files, 256, 1)

    def find_flaw(self, schema: pa.Schema) -> str:
        return "" if schema.equals(pa.schema(COLUMNS)) else f"rows have the columns {schema.names}"
