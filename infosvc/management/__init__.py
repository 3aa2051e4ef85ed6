"""The second service: what runs on which node."""
