"""Alerts as they travel, and the calls about them. Standard library only."""
