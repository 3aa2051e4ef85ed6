"""Tasks: a program that a user wants run once; the application master is the runner that runs it."""
