"""The agent of a node: run slots, their outcomes, and the reports to the service."""
