"""The bench is run from a checkout and never installed, so its tests must be told where it lies."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
