"""How a program may be called that YARN's plug-in has an order for: applications name it in a tag."""

from __future__ import annotations

import re

PROGRAM_NAME = re.compile(r"[a-z0-9._-]{1,64}", re.ASCII)  # YARN keeps tags in small letters
