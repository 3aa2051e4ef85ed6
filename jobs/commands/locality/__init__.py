"""The commands of `nodewise locality`, one file each."""
