"""`scripts/bench placement`: every policy beside plain ways to divide work, on invented clusters, in one run."""
