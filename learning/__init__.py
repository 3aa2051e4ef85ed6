"""Training on several nodes at once: what runs in the user's program on each node, with PyTorch alone beside it."""
