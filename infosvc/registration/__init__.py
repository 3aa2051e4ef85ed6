"""The first service: which data there is, and how it is produced."""
