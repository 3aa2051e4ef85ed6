"""What runs on a node: collectors, processors and the agent that runs them in slots."""
