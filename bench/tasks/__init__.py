"""Tasks: how soon one begins, how soon what it prints is seen, and what a box of Docker costs."""
