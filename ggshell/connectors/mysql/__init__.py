"""MariaDB and MySQL: the binary log as a source, and the database as a target."""
