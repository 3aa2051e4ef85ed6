"""A Kerberos of its own for the cluster on this machine: its realm, keytabs and certificates."""
