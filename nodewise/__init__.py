"""The front door: one command, one line per group."""
