"""`nodewise task`: programs that run once on the cluster."""
