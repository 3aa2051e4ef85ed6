"""Reads USER:PASSWORD and prints the name by which ZooKeeper knows who has shown it: USER and the SHA-1 of both."""

import base64
import hashlib
import sys

told = sys.stdin.read().strip()
digest = base64.b64encode(hashlib.sha1(told.encode(), usedforsecurity=False).digest()).decode()
print(f"{told.split(':')[0]}:{digest}")
