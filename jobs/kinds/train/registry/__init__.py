"""What a training run reads from the information service and writes to it; none of this delays or fails the run."""
