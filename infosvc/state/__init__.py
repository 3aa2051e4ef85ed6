"""What the service knows: in memory for readers, in the database for good."""
