"""LOAD: the tables of one database, copied straight into another by several jobs, as of one commit."""
