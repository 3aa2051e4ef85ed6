"""The small wheel: what programs of users import, without dependencies."""
