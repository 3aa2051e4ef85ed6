"""Tunnels: two-way bytes between a user's command and the runner of a task, passed on by the service."""
