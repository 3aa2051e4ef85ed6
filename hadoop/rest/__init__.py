"""What Hadoop's daemons tell over HTTP, read without a JVM."""
