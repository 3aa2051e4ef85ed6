"""Tickets of Kerberos, for who shows them and for who believes them."""
