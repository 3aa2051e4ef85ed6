"""A lab: one master and four workers as containers that behave as machines, for tests, benches and the curious."""

from lab.commands import LabError
from lab.cycle import down, limits, up
from lab.inventory import Machine, machine, machines
from lab.power import kill, limit, nodewise, run, start

__all__ = [
    "LabError",
    "Machine",
    "down",
    "kill",
    "limit",
    "limits",
    "machine",
    "machines",
    "nodewise",
    "run",
    "start",
    "up",
]
