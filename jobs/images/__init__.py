"""Images in HDFS: made, loaded, packed, read, decoded; and the rows that tell what they show."""
