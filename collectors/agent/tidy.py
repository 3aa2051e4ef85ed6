"""What an agent clears away now and then: processes that outlived their runs, the traces of slots that are gone."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Collection
from pathlib import Path

from collectors.agent.run.marked import kill_marked

TIDY_SECONDS = 60.0

log = logging.getLogger(__name__)


class Tidy:
    """Looks after the folders of slots in a state directory, from the thread that starts runs: every minute, and when
    a slot has left the wanted state and its run is gone.

    `forget` is called with the names that are left; `now_and_then` once a minute.
    """

    def __init__(
        self, state_dir: Path, forget: Callable[[Collection[str]], None], now_and_then: Callable[[], None]
    ) -> None:
        self._state_dir = state_dir
        self._forget = forget
        self._now_and_then = now_and_then
        self._due = 0.0
        self._wanted: Collection[str] | None = None
        self._left: Collection[str] = ()  # not wanted any more, and still busy

    def step(self, now: float, wanted: Collection[str] | None, which_are_busy: Callable[[], Collection[str]]) -> None:
        """`wanted` names the slots of the wanted state, stopped ones too, None before there is one; busy are those of
        which a run is left: their folders are let alone.
        """
        if now < self._due and wanted == self._wanted and not self._left:
            return
        busy = which_are_busy()
        left = frozenset(busy).difference(wanted or busy)
        if now < self._due and wanted == self._wanted and left == self._left:
            return
        self._wanted, self._left = wanted, left
        if now >= self._due:
            self._due = now + TIDY_SECONDS
            self._now_and_then()
        idle = [folder for folder in self._folders() if folder.name not in busy]
        kill_marked({str(folder) for folder in idle})
        if wanted is not None:
            self._clear([folder for folder in idle if folder.name not in wanted])
            self._forget(wanted)

    def _folders(self) -> list[Path]:
        """Of slots, whose names never begin with a dot."""
        folders = self._state_dir.iterdir()
        return [path for path in folders if path.name[0] != "." and path.is_dir() and not path.is_symlink()]

    def _clear(self, folders: list[Path]) -> None:
        for folder in folders:
            try:
                shutil.rmtree(folder)
            except OSError as error:
                log.warning("%s of a slot that is gone cannot be removed: %s", folder, error.strerror)
