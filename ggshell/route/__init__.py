"""The way between trails: what a pump and a distribution path do with the changes they read."""
