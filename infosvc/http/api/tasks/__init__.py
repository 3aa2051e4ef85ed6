"""The calls about tasks, and about the archives that go with them."""
