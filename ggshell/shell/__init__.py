"""The shell: statements in, answers out.  Handlers return data; ``render`` alone turns it into text."""
