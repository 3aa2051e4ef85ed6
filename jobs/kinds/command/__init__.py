"""Jobs that run copies of one program on the nodes that are best at something."""
