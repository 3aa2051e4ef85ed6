"""What can go wrong with Hadoop, as sentences."""

from infosvc.wire.errors import ErrorWithRemedy


class HadoopError(ErrorWithRemedy):
    """A daemon, HDFS or YARN did not do what was asked; the message says which, with which value."""


class UnknownApplication(HadoopError):
    """YARN answers that it does not know an application, or not any more."""


class Denied(HadoopError):
    """HDFS or YARN does not let this user do that."""


class GivenUp(HadoopError):
    """YARN has given up this attempt at an application, so what it does is in vain."""


class NoTicket(HadoopError):
    """A daemon wants a ticket of Kerberos from whoever asks, and there is none to show it."""
