"""What training runs survive: random faults of members, masters, nodes and the network, and the same parameters."""
