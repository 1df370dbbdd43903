"""``ggshell move``: moves a whole PostgreSQL database to another server, with a check before and a way back."""
