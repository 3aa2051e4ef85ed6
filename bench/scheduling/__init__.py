"""Measures the scheduler of YARN with the plug-in beside the stock policy."""
