"""Alerts: conditions that are looked at every second, and told when they begin or cease to hold."""
