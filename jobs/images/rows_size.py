"""How large rows are: a lease has only so many images that one commit holds the rows of all."""

from __future__ import annotations

ROW_BYTES = 4096
"""About the most that a row has without tensors."""
LARGEST_ROWS = 32 << 20
"""Of one commit."""
LARGEST_ROW = LARGEST_ROWS // 2
