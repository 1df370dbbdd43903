"""The binary log of MariaDB and MySQL as records: bytes in, events and rows out. Nothing here reads a file or a socket."""
