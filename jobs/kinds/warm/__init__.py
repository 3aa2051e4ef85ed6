"""Jobs that lay an environment out on nodes ahead of whoever uses it."""
