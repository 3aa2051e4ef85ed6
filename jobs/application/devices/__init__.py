"""GPUs and other devices of nodes that each container of a job has."""
