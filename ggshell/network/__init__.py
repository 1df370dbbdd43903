"""Trails between homes: frames, the opening of a connection, the sender's files, and the receiver."""
