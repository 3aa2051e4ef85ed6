"""What travels to nodes and containers: records, errors, and the client. The standard library only."""
