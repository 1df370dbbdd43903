"""Heartbeats: rows that travel the whole replication path, get a timestamp at each hop, and measure lag."""
