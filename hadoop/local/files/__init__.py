"""How the files of a cluster are written."""
