"""The agent's command: python3 agent.pyz --settings FILE [--detach | --stop]"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from collectors.agent.agent import Agent
from collectors.agent.daemon import DaemonError, detach, forget_pid, note_pid, say, stop_previous
from collectors.agent.settings import Settings, SettingsError, load


def main(arguments: Sequence[str] | None = None) -> int:
    """Run an agent in the foreground, or detached; exit status 1 and one sentence when it cannot start."""
    parser = argparse.ArgumentParser(prog="agent.pyz", description="Runs collectors and processors on this node.")
    parser.add_argument("--settings", type=Path, required=True, metavar="FILE", help="settings.json, mode 0600")
    parser.add_argument("--detach", action="store_true", help="return once the agent listens, in the background")
    parser.add_argument("--stop", action="store_true", help="only end the agent that runs with these settings")
    options = parser.parse_args(arguments)
    os.umask(0o077)
    try:
        settings = None if options.stop else load(options.settings)
        stop_previous(options.settings)
        return _run(settings, options.settings, options.detach) if settings else 0
    except (SettingsError, DaemonError) as error:
        print(error, file=sys.stderr)
        return 1


def _run(settings: Settings, file: Path, detached: bool) -> int:
    log_file = file.parent / "agent.log" if detached else None
    parent = detach(log_file) if log_file else None
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    try:
        agent = Agent(settings, log_file)
    except (OSError, ValueError, SettingsError) as error:
        reason = f"the agent of {settings.node_name} cannot start: {error}"
        logging.getLogger(__name__).error(reason)
        if parent is not None:
            say(parent, reason)
        return 1
    # Before anybody learns that it is there: a signal that came earlier would end it with everything left as it is.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: agent.stop())
    note_pid(file)
    if parent is not None:
        say(parent)
    try:
        agent.run()
    finally:
        forget_pid(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
