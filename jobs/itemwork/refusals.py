"""What is wrong with a call of a worker, as a sentence."""


class Refused(Exception):
    """A call is not as it has to be: the same one would be refused again. Nothing else that fails is the caller's."""
