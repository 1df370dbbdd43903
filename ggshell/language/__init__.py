"""Parse text: the manual's notation is compiled to parsers. This package has no knowledge of replication."""
