"""The rules of the check before a move: each reads facts of both databases and yields findings."""
