"""Text to shape: the manual's notation, compiled to parsers; it knows nothing of replication."""
