"""The shell: statements in, answers out.  The highest floor: it may use everything, nothing uses it."""
