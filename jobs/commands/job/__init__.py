"""`nodewise job`: work of any kind on YARN."""
