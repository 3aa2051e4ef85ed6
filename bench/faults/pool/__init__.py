"""A pool that faults hit while it has three jobs at once, and answers about single pictures."""
