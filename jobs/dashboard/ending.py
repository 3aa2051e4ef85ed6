"""Ends jobs by the command that a person would type, because that speaks Java and takes away what a job leaves."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from hadoop.errors import HadoopError
from hadoop.rest import site_files
from infosvc.wire.errors import NotReady
from jobs.dashboard.answers import Ending
from jobs.dashboard.sources.site import Place

COMMAND = (sys.executable, "-m", "nodewise")
PATIENCE_SECONDS = 90.0
MOST_AT_ONCE = 2
"""Each is a JVM for some seconds."""
MOST_KEPT = 64


class Endings:
    """Wishes to end jobs, and what became of them."""

    def __init__(self, home: Path, command: tuple[str, ...] = COMMAND) -> None:
        self._home = home
        self._command = command
        self._lock = threading.Lock()
        self._endings: dict[str, Ending] = {}

    def of(self, job_id: str) -> Ending | None:
        """What became of the last wish to end a job, None when nobody had one."""
        return self._endings.get(job_id)

    def begin(self, place: Place, job_id: str, note: Callable[[], None] = lambda: None) -> None:
        """Have a job ended, unless that is being done already; NotReady when too many are.

        `note` is called before; nothing is begun when it raises.
        """
        with self._lock:
            asked = [name for name, ending in self._endings.items() if ending.state == "asked"]
            if job_id in asked:
                return
            if len(asked) >= MOST_AT_ONCE:
                raise NotReady(f"{' and '.join(asked)} are being ended now", remedy="try again in a few seconds")
            self._note(job_id, Ending("asked"))
        try:
            note()
        except BaseException:
            with self._lock:
                del self._endings[job_id]
            raise
        threading.Thread(target=self._run, args=(place, job_id), name="board-ending", daemon=True).start()

    def _run(self, place: Place, job_id: str) -> None:
        words = ["--home", str(self._home), "job", "kill", job_id]
        where = ["--hadoop-conf", str(place.conf_dir), *_as_user(place)]
        try:
            done = subprocess.run(
                [*self._command, *words, *where],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",  # whatever it prints, the wish must not be left open
                timeout=PATIENCE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            ending = Ending("failed", f"YARN has not ended it within {PATIENCE_SECONDS:.0f} s")
        except OSError as error:
            ending = Ending("failed", f"the command cannot be started: {error}")
        else:
            ending = _ending(done.returncode, done.stdout, done.stderr)
        with self._lock:
            self._note(job_id, ending)

    def _note(self, job_id: str, ending: Ending) -> None:
        self._endings.pop(job_id, None)
        self._endings[job_id] = ending
        for oldest in [name for name, one in self._endings.items() if one.state != "asked"][:-MOST_KEPT]:
            del self._endings[oldest]


def _ending(status: int, printed: str, complained: str) -> Ending:
    """What the command came to, in its own last words."""
    words = (printed if status == 0 else complained).strip().splitlines()
    said = words[-1].removeprefix("Error: ") if words else f"the command ended with status {status}"
    return Ending("done" if status == 0 else "failed", said)


def _as_user(place: Place) -> list[str]:
    """Words that say as whom the command asks, which with Kerberos its own ticket says."""
    try:
        has_kerberos = site_files.has_kerberos(place.conf_dir)
    except HadoopError:
        has_kerberos = False  # the command itself says what is wrong with them
    return [] if has_kerberos else ["--user", place.user]
