"""Turns a wanted slot into a running child: the checked command, its limits, the fixed environment, its own folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from collectors.agent.run.child import Child
from collectors.agent.run.fork import Order
from collectors.agent.run.guard import Guard
from collectors.agent.run.limits import Confinement
from collectors.agent.run.process import Process, Started
from collectors.agent.run.template import Template
from collectors.agent.run.trust import Program, Pushed, Trust
from collectors.agent.settings import Settings
from infosvc.wire.records import Slot

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The one thing that runs inherit: the mark of a test cluster, by which its shutdown finds every process it has.
_INHERITED = "NODEWISE_CLUSTER"


class Launcher:
    """Starts runs of one agent, from its loop's thread: the kernel ends a run when the thread that began it ends."""

    def __init__(self, settings: Settings, pushed: Pushed, guard: Guard) -> None:
        self._settings = settings
        self._trust = Trust(pushed, settings.allow)
        self._confinement = Confinement(settings.limits())
        self._guard = guard
        self._template = Template(guard, _surroundings())

    def start(self, slot: Slot) -> Child:
        """Start one run; Refused when the command may not run here, OSError when it cannot."""
        program = self._trust.program(slot.cmd, slot.sha256)
        environment = self.environment(slot) | dict(program.environment)
        state_dir = Path(environment["STATE_DIR"])
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Child(partial(self._begin, slot, program, environment), state_dir, self._guard)

    def close(self) -> None:
        """End what is kept for runs to come."""
        self._template.close()

    def environment(self, slot: Slot) -> dict[str, str]:
        """What every run sees of its surroundings; its program adds PROGRAM_DIR, and LIB or PYTHONPATH."""
        settings = self._settings
        told = {
            "INFOSVC_URL": settings.service_url,
            "INFOSVC_TOKEN_FILE": settings.token_file,
            "NODE_NAME": settings.node_name,
            "DATA_NAME": slot.data_name,
            "EMITS": " ".join(slot.emits),
            "STATE_DIR": str(Path(settings.state_dir) / slot.data_name),
            "PROC_ROOT": settings.proc_root,
        }
        if settings.ca_file:
            told["NODEWISE_CA_FILE"] = settings.ca_file
        return _surroundings() | told

    def _begin(self, slot: Slot, program: Program, environment: Mapping[str, str], stdout: int, stderr: int) -> Process:
        if program.is_shipped_python:
            order = Order(program.argv, environment, self._settings.limits(), slot.timeout, *program.descriptors)
            forked = self._template.fork(order, stdout, stderr)
            if forked is not None:
                return forked
        argv, before = self._confinement.start(list(program.argv), slot.timeout)
        return Started(argv, environment, stdout, stderr, program.descriptors, before)


def _surroundings() -> dict[str, str]:
    """What every process that the agent starts for runs sees of the agent's own surroundings."""
    inherited = {key: value for key, value in os.environ.items() if key.startswith(_INHERITED)}
    return inherited | {"PATH": _PATH, "LANG": "C"}
