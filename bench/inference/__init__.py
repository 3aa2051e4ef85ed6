"""Classifying pictures: the plain loop, nodewise and Spark side by side."""
