"""What makes the two wheels: nodewise with all of its rooms, and what programs import (`client/`)."""
