"""Where the application master is now, as a file in HDFS tells, copied into a file for the program."""

from __future__ import annotations

import json
from pathlib import Path

from jobs.images.storage import Hdfs


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
            address = str(json.loads(self._storage.read(self._master, 0, None))["address"])
        except FileNotFoundError:
            return self._is_gone()
        except Exception as error:  # whatever the client raises: HDFS is away, or the file is just being written
            print(f"the address of the application master cannot be read: {error}", flush=True)
            return False
        if address != self.address:
            self.address = address
            draft = self._file.with_suffix(".new")
            draft.write_text(address)
            draft.replace(self._file)
        return False

    def _is_gone(self) -> bool:
        try:
            return not self._storage.exists(self._master.rpartition("/")[0])
        except Exception:  # as above
            return False
