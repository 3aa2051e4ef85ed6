"""The groups of the command that speak of the service, one file each."""
