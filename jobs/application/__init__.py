"""What every application of ours on YARN needs."""
