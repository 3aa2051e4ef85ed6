"""Properties are checked without a time limit for each example: on a busy machine it would fail for no reason."""

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
