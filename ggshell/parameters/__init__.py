"""Parameter files: text to typed, checked parameters."""
