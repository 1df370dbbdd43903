"""What happens to a change between two databases: capture, transform, apply, heartbeat, compare."""
