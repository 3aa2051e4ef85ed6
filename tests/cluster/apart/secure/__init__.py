"""One cluster for all modules of this folder, which ends with the last of them."""
