"""Hadoop's own client in a JVM inside this process: HDFS, YARN, an application master's session."""
