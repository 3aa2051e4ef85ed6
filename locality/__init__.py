"""Who should do what: pure arithmetic over a snapshot of blocks and capabilities."""
