"""One package per kind of database. Each implements the interfaces that capture and apply define."""
