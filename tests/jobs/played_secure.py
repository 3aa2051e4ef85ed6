"""The Hadoop that is played, with Kerberos as far as callers notice it: who is asked for, and whose a folder is."""

from __future__ import annotations

import json
from typing import Any

from tests.jobs.decisions import decide
from tests.jobs.played import JOB, Hadoop

NO_PROXY = "User: svc is not allowed to impersonate {}"


class SecureHadoop(Hadoop):
    """One with Kerberos, asked with the ticket of svc: homes are their users', and `may_ask` tells of whom svc may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_ask = {"alice", "bob"}
        self.seen_by: list[str] = []
        self.app["user"] = "alice"
        self.stored["/user/alice/pictures/one.jpg"] = b"a picture"
        self.stored[f"/user/alice/.nodewise/decisions/{JOB}.json"] = decide().to_bytes()

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, bytes]:
        if not path.startswith("/webhdfs/v1"):
            return super().answer(path, query)
        wanted = query.get("doas", ["svc"])[0]
        if query["op"] != ["GETHOMEDIRECTORY"]:
            self.seen_by.append(wanted)
        if "doas" in query and wanted not in self.may_ask:
            return _refuse("AuthorizationException", NO_PROXY.format(wanted))
        where = path.removeprefix("/webhdfs/v1")
        if query["op"] == ["GETHOMEDIRECTORY"]:
            return 200, json.dumps({"Path": f"/user/{wanted}"}).encode()
        if where.startswith("/user/") and where.split("/")[2] != wanted:
            return _refuse("AccessControlException", f"Permission denied: user={wanted}")
        return super().answer(path, query)

    def hdfs(self, path: str, operation: str) -> Any:
        if operation == "GETFILEBLOCKLOCATIONS" and path in self.stored:
            return {"BlockLocations": {"BlockLocation": [{"offset": 0, "length": 9, "hosts": ["alpha"]}]}}
        return super().hdfs(path, operation)


def _refuse(exception: str, message: str) -> tuple[int, bytes]:
    return 403, json.dumps({"RemoteException": {"exception": exception, "message": message}}).encode()
