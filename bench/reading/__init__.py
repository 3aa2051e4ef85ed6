"""Measures how fast pictures are read that are files each, and packed ones."""
