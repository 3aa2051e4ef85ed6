"""What is known of the data in HDFS and how it would be divided: `nodewise locality`, one command a file."""
