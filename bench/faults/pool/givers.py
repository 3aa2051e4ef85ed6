"""Three who give a pool one job after another, so that it always has three at once."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable

AT_ONCE = 3
SAID = 500
"""Letters of what a command said that are kept."""


class Givers:
    """Each begins a command with `give`, which gets a path for the rows of its job, and the next one when it has ended.

    `jobs` are the paths of all jobs. A command that fails is `wrong`, and whoever began it gives no other job.
    """

    def __init__(self, give: Callable[[str], subprocess.Popen[str]], output: str) -> None:
        self.jobs: list[str] = []
        self.wrong: list[str] = []
        self._begin = give
        self._output = output
        self._is_enough = False
        self._commands: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._give, name=f"giver {at}", daemon=True) for at in range(AT_ONCE)]

    @property
    def is_at_work(self) -> bool:
        """Whether a job has not ended, or another one will come."""
        return any(one.is_alive() for one in self._threads)

    def start(self) -> None:
        """Begin to give."""
        for one in self._threads:
            one.start()

    def stop(self) -> None:
        """Give no other job; those that were given go on."""
        with self._lock:
            self._is_enough = True

    def leave(self) -> None:
        """End also the commands."""
        self.stop()
        with self._lock:
            for command in self._commands:
                command.terminate()
        for one in self._threads:
            if one.is_alive():
                one.join()

    def _give(self) -> None:
        while begun := self._begin_next():
            output, command = begun
            _, said = command.communicate()
            with self._lock:
                self._commands.remove(command)
                if command.returncode:
                    self.wrong.append(f"{output}: its command ended with {command.returncode}: {said.strip()[-SAID:]}")
                    return

    def _begin_next(self) -> tuple[str, subprocess.Popen[str]] | None:
        """The path and the command of a new job, None when there are enough."""
        with self._lock:
            if self._is_enough:
                return None
            output = f"{self._output}/{len(self.jobs) + 1:03}"
            self.jobs.append(output)
            command = self._begin(output)
            self._commands.add(command)
            return output, command
