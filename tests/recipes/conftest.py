"""The real parts that recipes run on, as other rooms' tests start them."""

from __future__ import annotations

from tests.infosvc.conftest import mariadb

__all__ = ["mariadb"]
