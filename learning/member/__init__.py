"""A member of a run: the loop of a program, its group, its shares and its state."""
