"""The calls about alerts."""
