"""What every kind of job shares that divides items: plan, leases, rows, blame, results."""
