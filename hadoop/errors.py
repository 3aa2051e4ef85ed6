"""What can go wrong with Hadoop, as sentences."""


class HadoopError(Exception):
    """A daemon, HDFS or YARN refused or failed; the text says which one, with which value, and what to do."""
