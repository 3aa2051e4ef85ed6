"""Files of HDFS that are beside their final names, as long as they are written or may have to be put back.

Who is killed meanwhile leaves some behind, which nobody needs any more a day later.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress

from hadoop.client.filesystem import FileSystem
from hadoop.errors import HadoopError

OLD_SECONDS = 86_400.0
_DRAFT = re.compile(r".+\.[0-9a-f]{8}")


def clear_old(filesystem: FileSystem, folder: str) -> None:
    """Delete the drafts in a folder that are older than a day; what HDFS refuses stays for the next time."""
    with suppress(HadoopError):
        for one in filesystem.entries(folder):
            if _DRAFT.fullmatch(one.name) and time.time() - one.modified_at > OLD_SECONDS:
                filesystem.delete(f"{folder}/{one.name}")
