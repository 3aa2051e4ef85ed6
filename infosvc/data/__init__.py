"""The third service: the latest value of everything, its history, and who is told of it."""
