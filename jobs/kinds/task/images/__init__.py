"""Images for boxes as HDFS keeps them: layers by their digests, each once, and the server from which Docker pulls."""
