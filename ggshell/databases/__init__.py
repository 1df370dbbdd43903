"""One folder per kind of database: each implements the interfaces that capture and apply name."""
