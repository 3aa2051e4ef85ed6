"""Where the application master is now, as a file in HDFS tells, copied into a file for the program."""

from __future__ import annotations

from pathlib import Path

from jobs.images.storage import Hdfs
from jobs.worker.lookout import look


class Where:
    """`address` is the last one that was found."""

    def __init__(self, master: str, file: Path) -> None:
        self._storage = Hdfs()
        self._master = master
        self._file = file
        self.address = ""

    def look(self) -> bool:
        """Look again; whether the job's folder is gone."""
        try:
            found = look(self._storage, self._master)
        except Exception as error:  # whatever the client raises: HDFS is away
            print(f"the address of the application master cannot be read: {error}", flush=True)
            return False
        if found.address and found.address != self.address:
            draft = self._file.with_suffix(".new")
            draft.write_text(found.address)
            draft.replace(self._file)
            self.address = found.address
        return found.gone
