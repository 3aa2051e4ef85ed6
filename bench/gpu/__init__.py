"""Shows on a machine with a card that an environment runs with the machine's own driver, and not without it."""
