"""What answers below /api/v1 and beside it: a file for each group of calls, and the list of them in `calls`."""
