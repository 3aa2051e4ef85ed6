"""What an agent tells the service, kept until the service has it."""
