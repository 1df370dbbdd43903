"""Lag: the lag of groups, the parts of a heartbeat's way, their spread over time, the lag archive, and when lag is reported."""
