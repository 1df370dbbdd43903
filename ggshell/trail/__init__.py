"""Trail files: the durable queue between processes, in GoldenGate's layout (FORMAT.md describes every byte).

``writer`` and ``reader`` write and read whole batches; ``record`` decodes a single record for inspection.
"""
