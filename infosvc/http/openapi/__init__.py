"""What the OpenAPI document says of calls, bodies and answers."""
