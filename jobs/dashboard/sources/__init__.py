"""Where the board finds what it answers: the cluster, its HDFS and YARN, and the service that it belongs to."""
