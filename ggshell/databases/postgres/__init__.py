"""PostgreSQL as a source and as a target, and an embedded server for demos and tests."""
