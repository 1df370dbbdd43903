"""``ggshell move``: moves a whole PostgreSQL database to another server, with a check before it and a switch back."""
