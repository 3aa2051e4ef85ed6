"""What brings programs to nodes: bundles, releases, SSH."""
