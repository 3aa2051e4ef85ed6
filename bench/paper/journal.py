"""Every run is kept as soon as it ended, so that a bench that is interrupted goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.info.errors import BenchError


class Journal:
    """A file of JSON lines: first the settings of the bench, then what was found, in the order in which it was."""

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path = path
        self.settings = dict(settings)
        self.scene: dict[str, Any] | None = None
        self.runs: list[dict[str, Any]] = []

    @classmethod
    def begin(cls, path: Path, settings: Mapping[str, Any]) -> Journal:
        """A new one; BenchError when the file is there already."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x") as file:
                file.write(json.dumps({"settings": dict(settings)}) + "\n")
        except FileExistsError:
            raise BenchError(f"{path} exists: name another file, or go on with --resume {path}") from None
        return cls(path, settings)

    @classmethod
    def resume(cls, path: Path, settings: Mapping[str, Any]) -> Journal:
        """One that was begun with the same settings; BenchError names what differs, or that it is not a journal."""
        try:
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            begun = lines[0]["settings"]
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise BenchError(f"{path} is not a journal of this bench ({error}): name the one it printed") from None
        differing = [name for name in settings if begun.get(name) != settings[name]]
        if differing:
            said = ", ".join(f"{name} {begun.get(name)}, not {settings[name]}" for name in differing)
            raise BenchError(f"{path} was begun with {said}: give the same options again")
        journal = cls(path, settings)
        for line in lines[1:]:
            journal._take(line)
        return journal

    def has(self, number: int, method: str) -> bool:
        """Whether this run has ended, well or not."""
        return any((one["round"], one["method"]) == (number, method) for one in self.runs)

    def set_scene(self, scene: Mapping[str, Any]) -> None:
        """Keep how busy the nodes are."""
        self._append({"scene": dict(scene)})

    def add(self, run: Mapping[str, Any]) -> None:
        """Keep a run that ended."""
        self._append({"run": dict(run)})

    def _append(self, line: dict[str, Any]) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        self._take(line)

    def _take(self, line: dict[str, Any]) -> None:
        if "scene" in line:
            self.scene = line["scene"]
        else:
            self.runs.append(line["run"])
