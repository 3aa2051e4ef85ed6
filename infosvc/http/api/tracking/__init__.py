"""What MLflow's client calls, in MLflow's own protocol: REST 2.0, as far as tracking runs needs it."""
