"""Runs that spoil live replication, round by round, and count what was lost or came twice."""
