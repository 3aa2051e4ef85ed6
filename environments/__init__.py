"""Framework environments: exact contents in HDFS, asked for by name and version, and where they can run."""
