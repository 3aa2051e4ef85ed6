"""Who leads a run and what members say to it; standard library only, as application masters have no PyTorch."""
