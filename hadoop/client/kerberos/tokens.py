"""What containers show instead of a ticket where Hadoop has Kerberos: delegation tokens, which travel with them.

The ResourceManager renews those of an application master as long as it runs, and has them cancelled when it has ended.
Those of a submission that fails are cancelled at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import jpype

_SECURITY = "org.apache.hadoop.security"
_HDFS = "HDFS_DELEGATION_TOKEN"
_BY_NAME = "ha-hdfs:"
"""What the service of a token begins with that is for any NameNode of several, and has no address."""


def is_secure() -> bool:
    """Whether Hadoop wants tickets or tokens of everybody."""
    return bool(jpype.JClass(f"{_SECURITY}.UserGroupInformation").isSecurityEnabled())


@contextmanager
def for_master(filesystem: Any, yarn_client: Any, conf: Any) -> Iterator[Any]:
    """Get new ones for HDFS and the ResourceManager from Java's clients of both, as a launch context takes them.

    When what is done with them inside fails, they are cancelled: the ResourceManager does so only where an application
    has ended. Java's errors are raised.
    """
    held = jpype.JClass(f"{_SECURITY}.Credentials")()
    try:
        renewer = jpype.JClass("org.apache.hadoop.yarn.client.util.YarnClientUtils").getRmPrincipal(conf)
        filesystem.addDelegationTokens(renewer, held)
        given = yarn_client.getRMDelegationToken(_text(renewer))
        service = jpype.JClass("org.apache.hadoop.yarn.client.ClientRMProxy").getRMDelegationTokenService(conf)
        token = jpype.JClass("org.apache.hadoop.yarn.util.ConverterUtils").convertFromYarn(given, service)
        held.addToken(token.getService(), token)
        yield _written(held)
    except BaseException:
        _cancel(held, conf)
        raise


def _cancel(credentials: Any, conf: Any) -> None:
    """Make tokens worthless; one that cannot be cancelled now ends by itself, after a day unless it is renewed."""
    for token in credentials.getAllTokens():
        with suppress(jpype.JException):
            token.cancel(conf)


def for_workers(filesystem: Any) -> Any:
    """Those of this process that are for HDFS, as a launch context takes them: a worker needs nothing of YARN."""
    own = jpype.JClass(f"{_SECURITY}.UserGroupInformation").getCurrentUser().getCredentials()
    held = of_hdfs(own)
    name_as_written(held, filesystem.getCanonicalServiceName(), filesystem.getUri().getAuthority())
    return _written(held)


def of_hdfs(credentials: Any) -> Any:
    """The tokens for HDFS among credentials, as credentials."""
    held = jpype.JClass(f"{_SECURITY}.Credentials")()
    for token in credentials.getAllTokens():
        if str(token.getKind()) == _HDFS:
            held.addToken(token.getService(), token)
    return held


def name_as_written(credentials: Any, service: Any, authority: Any) -> None:
    """Let a token for a service also be found by `authority`, as which the site files name it.

    Java calls a NameNode by its IP address, but what reads HDFS without Java looks for the name that is written. Of
    several NameNodes both go by the one name that these have in common.
    """
    token = credentials.getToken(_text(service))
    if token is not None and not str(service).startswith(_BY_NAME) and str(service) != str(authority):
        copied = token.copyToken()
        copied.setService(_text(authority))
        credentials.addToken(_text(authority), copied)


def _text(value: Any) -> Any:
    return jpype.JClass("org.apache.hadoop.io.Text")(value)


def _written(credentials: Any) -> Any:
    """A ByteBuffer."""
    stream = jpype.JClass("org.apache.hadoop.io.DataOutputBuffer")()
    credentials.writeTokenStorageToStream(stream)
    return jpype.JClass("java.nio.ByteBuffer").wrap(stream.getData(), 0, stream.getLength())
