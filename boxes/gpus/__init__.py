"""GPUs of a node for the programs that ask for some: which will do, which are free, and whose they are meanwhile."""
