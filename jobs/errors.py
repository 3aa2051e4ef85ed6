"""What can go wrong with a job, as sentences."""


class JobError(Exception):
    """A job was refused or failed; the text says why and what to do."""
