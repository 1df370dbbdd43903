"""The benches: every figure compared with its peer, measured in the same run, alternating, median of at least three."""
