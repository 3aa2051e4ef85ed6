"""Runs on a node: infosvc.shipping.release sends this very text over SSH to python3, and then one verb after the other.

Standard library only. Each line on stdin is a JSON list of a verb and its arguments, each line on stdout one JSON
object; `error` in it says why the files of the node stand in the way, `busy` that somebody else is at work there.
Below the node's directory lie `releases`, the links `current` and `previous` to two of them, `settings.json`, `token`,
and what the agent itself keeps. Where a file `supervised` lies too, somebody else, such as systemd, runs the agent and
starts it again whenever it ends.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

AGENT = "agent.pyz"
MANIFEST = "manifest.json"
SETTINGS = "settings.json"
SUPERVISED = "supervised"
OWN_FILES = ("ca.pem", "agent.pem", "agent.key")
LINKS = ("current", "previous")
# Everything that a node's directory may hold; `remove` takes no other file.
MADE = (
    *LINKS, "releases", SETTINGS, "token", *OWN_FILES, "state", "agent.log", "agent.pid", SUPERVISED, "shipping.lock",
)  # fmt: skip
BROAD = (
    "/",
    "/bin",
    "/home",
    "/opt",
    "/root",
    "/sbin",
    "/srv",
    "/usr",
    "/usr/bin",
    "/usr/local",
    "/usr/local/bin",
    "/usr/sbin",
    "/var",
)
MOST_FILES = 20_000  # that a folder which is allowed is looked through for
# What runs whatever its arguments say.
INTERPRETER = re.compile(
    r"(ba|da|[akz]|tc|c|fi)?sh|env|busybox|toybox|(python|perl|ruby|lua|luajit|php|tclsh|node|nodejs|pypy)[0-9.]*|[gmn]?awk|"
    r"java|jshell|xargs|find|sudo|su|doas|nohup|nice|setsid|timeout|systemd-run|ssh|ld-linux.*"
)
LOCK_SECONDS = 5.0  # until who asks hears that somebody else is at work here, and may ask again

_held: list[int] = []


def look(directory: str, make: bool) -> dict[str, Any]:
    """What stands in the directory, which is relative to the login's home, and how much room is left there."""
    base = Path(os.path.realpath(Path.home() / directory))
    if make:
        (base / "releases").mkdir(parents=True, exist_ok=True)
        base.chmod(0o700)
        tempfile.TemporaryFile(dir=base).close()
    if base.exists() and not _held:
        _lock(base)
    settings = _settings(base)
    return {
        "directory": str(base),
        "free": shutil.disk_usage(base).free if base.exists() else 0,
        "settings": settings,
        "certificate": _text(Path(settings["tls_cert"])) if settings.get("tls_cert") else None,
        "own": {name: _sha256(base / name) for name in OWN_FILES if (base / name).is_file()},
        "supervised": (base / SUPERVISED).exists(),
        "links": _links(base),
        "releases": {release.name: _version(release) for release in (base / "releases").glob("*")},
    }


def check_allowed(directories: list[str]) -> dict[str, Any]:
    """Why folders may not be allowed, where they may not: whoever names a program in them could run anything."""
    reasons = {directory: _reason(directory) for directory in directories}
    return {"refused": {directory: reason for directory, reason in reasons.items() if reason}}


def unpack(base: str, release: str, content: str) -> dict[str, Any]:
    """Unpack a zip in base64 as a release; the answer tells the SHA-256 of each file that lies there now."""
    target = Path(base) / "releases" / release
    try:
        with zipfile.ZipFile(io.BytesIO(base64.b64decode(content))) as archive:
            archive.extractall(target)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    files = [file for file in target.rglob("*") if file.is_file()]
    for file in files:
        file.chmod(0o700)
    return {"hashes": {file.relative_to(target).as_posix(): _sha256(file) for file in files}}


def discard(base: str, release: str) -> dict[str, Any]:
    """Remove one release."""
    shutil.rmtree(Path(base) / "releases" / release, ignore_errors=True)
    return {}


def switch(base: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """Set links and files as wanted (None removes one) and start the agent anew, which ends the one before.

    An agent with a supervisor is only ended, and it is the supervisor that starts it anew.
    The answer holds what stood there `before`, for a later switch back. An agent that does not start is one that was
    not switched to: all is put back, and `agent` in the answer is what it said.
    """
    place = Path(base)
    before = {"links": _links(place), "files": {name: _text(place / name) for name in wanted["files"]}}
    try:
        _set(place, wanted)
        complaint = _begin_anew(place)
    except BaseException:
        _set(place, before)
        raise
    if complaint is None:
        return {"before": before}
    _set(place, before)
    _begin_anew(place)
    prune(base)
    return {"agent": complaint}


def prune(base: str) -> dict[str, Any]:
    """Remove releases that no link leads to."""
    place = Path(base)
    kept = set(_links(place).values())
    for release in (place / "releases").iterdir():
        if release.name not in kept:
            shutil.rmtree(release, ignore_errors=True)
    return {}


def remove(directory: str) -> dict[str, Any]:
    """End the agent of the directory, and remove all that was made for it with the folders that are empty then.

    The answer tells whether there was anything, or that a supervisor would start the agent again.
    """
    base = Path(os.path.realpath(Path.home() / directory))
    if not any((base / name).exists() for name in ("releases", SETTINGS, "token")):
        return {"removed": False}
    _lock(base)
    if (base / SUPERVISED).exists():
        return {"supervised": str(base)}
    complaint = _run_agent(base, "--stop")
    if complaint is not None:
        return {"agent": complaint}
    for name in MADE:
        for found in (base / name, base / f"{name}.new"):
            if found.is_dir() and not found.is_symlink():
                shutil.rmtree(found)
            else:
                found.unlink(missing_ok=True)
    home = Path(os.path.realpath(Path.home()))
    for folder in (base, *base.parents):
        if folder == home or (folder != base and home not in folder.parents) or any(folder.iterdir()):
            break
        folder.rmdir()
    return {"removed": True}


def _reason(directory: str) -> str | None:
    real = os.path.realpath(directory)
    if os.path.normpath(directory) in BROAD or real in BROAD:
        return "is a folder of the system"
    looked = 0
    for folder, _, files in os.walk(real):
        looked += len(files)
        for name in sorted(files):
            if INTERPRETER.fullmatch(name):
                return f"holds {Path(folder) / name}, which runs whatever its arguments say"
        if looked > MOST_FILES:
            return f"holds more than {MOST_FILES} files"
    return None


class Busy(Exception):
    """Somebody else is at work with the files of the node."""


def _lock(base: Path) -> None:
    """Be the only one at work here until this process ends; two at once would remove each other's releases."""
    lock, deadline = os.open(base / "shipping.lock", os.O_RDWR | os.O_CREAT, 0o600), time.monotonic() + LOCK_SECONDS
    while not _held:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _held.append(lock)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(lock)
                raise Busy("somebody else is pushing there") from None
            time.sleep(0.05)


def _settings(base: Path) -> dict[str, Any]:
    """What the agent was told, nothing when none is installed or nobody could read it."""
    try:
        settings = json.loads(_text(base / SETTINGS) or "{}")
    except ValueError:
        return {}
    return settings if isinstance(settings, dict) else {}


def _links(base: Path) -> dict[str, str | None]:
    return {name: (base / name).readlink().name if (base / name).exists() else None for name in LINKS}


def _version(release: Path) -> str | None:
    """The version of a release whose files are all as its manifest says, else None."""
    with suppress(OSError, ValueError, AttributeError):
        text = (release / MANIFEST).read_bytes()
        if all(_sha256(release / name) == digest for name, digest in json.loads(text).items()):
            return hashlib.sha256(text).hexdigest()[:12]
    return None


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _text(file: Path) -> str | None:
    try:
        return file.read_text()
    except FileNotFoundError:
        return None


def _set(base: Path, wanted: dict[str, Any]) -> None:
    """Make each file and link the wanted one in one step each, the links last."""
    if wanted["links"]["current"] is None:
        _run_agent(base, "--stop")
    for name, text in wanted["files"].items():
        _replace(base / name, text, lambda new, text=text: _write_private(new, text))
    for name, release in wanted["links"].items():
        _replace(base / name, release, lambda new, release=release: new.symlink_to(base / "releases" / release))


def _replace(target: Path, content: str | None, make: Any) -> None:
    new = target.with_name(target.name + ".new")
    for leftover in (new, *([] if content is not None else [target])):
        leftover.unlink(missing_ok=True)
    if content is not None:
        make(new)
        new.replace(target)


def _write_private(file: Path, text: str) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        opened.write(text)


def _begin_anew(base: Path) -> str | None:
    """As `_run_agent`: have the current agent run instead of the one before."""
    return _run_agent(base, "--stop" if (base / SUPERVISED).exists() else "--detach")


def _run_agent(base: Path, word: str) -> str | None:
    """Call the current agent's program, if there is one; None when it did as told, else its last words."""
    program = base / "current" / AGENT
    if not program.exists():
        return None
    argv = [sys.executable, "-I", "-S", str(program), "--settings", str(base / SETTINGS), word]
    ended = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if ended.returncode == 0:
        return None
    return ended.stderr.strip().rpartition("\n")[2] or f"the agent ended with status {ended.returncode}"


VERBS = {verb.__name__: verb for verb in (look, check_allowed, unpack, discard, switch, prune, remove)}


def answer(line: str) -> dict[str, Any]:
    """Do what one line asks for."""
    verb, arguments = json.loads(line)
    try:
        return VERBS[verb](**arguments)
    except Busy as error:
        return {"busy": str(error)}
    except (OSError, zipfile.BadZipFile) as error:
        return {"error": str(error)}


if __name__ == "__main__":
    os.umask(0o077)
    for asked in sys.stdin:
        print(json.dumps(answer(asked)), flush=True)
