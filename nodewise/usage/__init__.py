"""`nodewise usage`: who has used how much of the cluster."""
