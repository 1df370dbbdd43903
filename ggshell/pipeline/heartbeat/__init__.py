"""Heartbeats: rows that pass along the whole replication path, get a timestamp at each hop, and measure lag."""
