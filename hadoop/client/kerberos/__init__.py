"""Hadoop with Kerberos: who logs in, and what containers show instead of a ticket."""
