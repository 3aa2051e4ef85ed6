"""What is measured, a function each; each answers with the readings of its figures, by their keys."""
