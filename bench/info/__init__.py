"""`scripts/bench info`: the information service beside Prometheus, on this machine, in one run."""
