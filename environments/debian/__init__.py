"""Environments of Debian's packages: a root of their files, of which no script of theirs has run."""
