"""What speaks to Hadoop."""
