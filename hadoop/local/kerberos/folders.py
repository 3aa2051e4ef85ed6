"""The folders of HDFS that users need, which without Kerberos everybody makes for himself."""

from __future__ import annotations

from urllib.parse import urlencode

from hadoop.local.kerberos import asking
from hadoop.local.kerberos.realm import Realm


def make(realm: Realm, namenode: str) -> None:
    """Make them by the NameNode at an address (https://host:port) that is active; HadoopError when it refuses."""
    asking.put(realm, [f"{namenode}/webhdfs/v1{path}?{urlencode(what)}" for path, what in _steps(realm)])


def _steps(realm: Realm) -> list[tuple[str, dict[str, str]]]:
    steps: list[tuple[str, dict[str, str]]] = [
        ("/tmp", {"op": "MKDIRS"}),  # noqa: S108  # of HDFS
        ("/tmp", {"op": "SETPERMISSION", "permission": "1777"}),  # noqa: S108
        ("/nodewise", {"op": "MKDIRS"}),  # environments, of whoever is the first to make one
        ("/nodewise", {"op": "SETPERMISSION", "permission": "1777"}),
        ("/user", {"op": "MKDIRS"}),
    ]
    for user in realm.users:
        steps += [
            (f"/user/{user}", {"op": "MKDIRS"}),
            (f"/user/{user}", {"op": "SETPERMISSION", "permission": "700"}),
            (f"/user/{user}", {"op": "SETOWNER", "owner": user, "group": user}),
        ]
    return steps
