"""States as bytes and as files."""
