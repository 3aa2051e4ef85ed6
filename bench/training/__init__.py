"""Training on uneven nodes beside DDP, torchrun's elastic runs and MXNet's `dist_sync`: speed, losses, accuracy."""
