"""The kinds of job."""
