"""Training on several nodes at once, by one loop in the user's program."""
