"""`nodewise job`, `images`, `env` and `locality`: one command group a file."""
