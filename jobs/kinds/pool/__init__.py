"""A kind of job that keeps workers ready for other jobs."""
