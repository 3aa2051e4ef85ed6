"""The application master: blocks and capability in, a plan out, one container per node."""
