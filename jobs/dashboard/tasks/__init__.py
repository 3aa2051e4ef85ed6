"""What the board reads in HDFS of a task: what it printed, reported, used and left, and why it ran where it ran."""
