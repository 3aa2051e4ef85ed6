"""Runs that programs track with MLflow's client: what is kept of them, whose they are, and how they are found."""
