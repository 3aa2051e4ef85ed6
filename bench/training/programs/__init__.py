"""The programs that are measured; they run in the workers' Python and read `bench.training.settings`."""
