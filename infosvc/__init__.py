"""What the cluster knows: one service, one database, and the wire that programs speak to it."""
