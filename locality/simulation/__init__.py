"""The same leases and plans against invented clusters, faults and wrong speeds."""
