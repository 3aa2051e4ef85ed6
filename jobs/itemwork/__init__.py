"""What every kind of job shares that divides items: leases, rows, blame."""
