"""Measurements of nodewise beside others."""
