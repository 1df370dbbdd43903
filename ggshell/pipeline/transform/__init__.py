"""Column expressions, compiled to functions over many rows at once. Used by capture, routing and apply."""
