"""`nodewise notebook`, and the way from a port of this machine to a socket in the folder of a task."""

from jobs.commands.notebook.command import notebook

__all__ = ["notebook"]
