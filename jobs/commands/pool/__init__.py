"""The commands of `nodewise pool`."""
