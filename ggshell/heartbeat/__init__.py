"""Heartbeats: rows that travel the whole way and collect a time at each hop, and what can be said of lag by them."""
