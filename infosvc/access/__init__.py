"""Who may do what, how often, and the record of who changed what."""
