"""Python environments that travel with a job: packed here, published to HDFS."""
