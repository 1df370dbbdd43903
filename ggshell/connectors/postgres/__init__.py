"""PostgreSQL as a source and as a target, and a private server for demos and tests."""
