"""What is asked of the service for tasks: by commands, and by programs that import `nodewise.tasks`.

It needs the standard library alone, as those programs run in environments of their users.
"""
