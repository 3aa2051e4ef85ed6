"""Tasks: the rules by which they begin, change and go. What runs them asks over REST; nothing here knows Hadoop."""
