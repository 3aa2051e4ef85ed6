"""What tasks survive: random faults while programs run in boxes of both kinds, and what must hold afterwards."""
