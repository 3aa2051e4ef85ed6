"""What can go wrong with Hadoop, as sentences."""


class HadoopError(Exception):
    """A daemon, HDFS or YARN did not do what was asked; the text says which, with which value, and the remedy."""
