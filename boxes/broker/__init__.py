"""The broker: a small program of root's that runs boxes of Docker for callers who must not speak to Docker themselves.

Whoever speaks to Docker is root on that machine, and every application on YARN runs as one user. So no container gets
Docker's socket: it asks the broker, which takes images that an operator allows, and nothing that the caller could not
do as a process of its own. It needs only Python: the standard library and the files of this folder.
"""
