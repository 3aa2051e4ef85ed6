"""Work on YARN: an application master that divides it and workers that do it."""
