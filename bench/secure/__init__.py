"""What Kerberos and privacy cost, and how long it takes until one of two takes over."""
