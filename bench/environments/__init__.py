"""How soon a program begins in an environment of nodewise, beside other ways to bring the same packages to nodes."""
