"""`nodewise doctor`: what is wrong with this machine and the cluster it would use, and what to do about it.

Each subject has a file with two kinds of functions: `read_...` looks at the world and is allowed to fail, and a check
turns what was read into a Finding without looking at anything else.
"""
