"""Further things that a service answers: whoever starts it hands them over, for the service knows none of them.

An extra is a function of the application, for example one that registers a blueprint. Its views declare what a caller
needs by infosvc.auth.needs; those that declare nothing are for admins. What they raise of infosvc.errors is answered in
the form of all errors, and `flask.g.caller` is who calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from flask import Flask

Extra: TypeAlias = "Callable[[Flask], None]"

EXTRAS = "infosvc.extras"  # under which name a command's context holds those that `nodewise serve` mounts
