"""Columns worked on: expressions compiled to functions over many rows at once, for capture, routing and applying alike."""
