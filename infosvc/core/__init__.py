"""The parts of a running service, put together, and what they tell of themselves."""
