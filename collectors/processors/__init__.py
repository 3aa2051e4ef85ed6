"""One processor a file: reads registered data, prints a more useful value."""
