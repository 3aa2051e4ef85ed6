"""A real Hadoop cluster on this one machine."""
