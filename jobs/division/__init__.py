"""How work is divided: what nodes can do, the decision, and why."""
