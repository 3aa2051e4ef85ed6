"""Training on uneven nodes: members and shares change who computes a step, never what is computed."""
