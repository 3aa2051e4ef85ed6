"""Hands the tasks that the information service keeps to YARN, and tells the service what becomes of them."""
