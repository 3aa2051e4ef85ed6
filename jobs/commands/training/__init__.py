"""`nodewise train`: a training run on several nodes, or on this machine."""
