"""What can go wrong with a job, as sentences."""

from infosvc.wire.errors import ErrorWithRemedy


class JobError(ErrorWithRemedy):
    """A job was refused or failed; the message says why, the remedy what to do."""
