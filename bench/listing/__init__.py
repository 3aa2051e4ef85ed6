"""Measures how long it takes to know where the blocks of many files are."""
