"""Messages to web addresses outside: what is to be told is kept in the database until it has arrived."""
