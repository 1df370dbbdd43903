"""Trails: the durable queue between processes, in GoldenGate's layout (FORMAT.md states every byte).

Whole batches go in and out through ``writer`` and ``reader``; ``record`` is for looking at one record.
"""
