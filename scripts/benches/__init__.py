"""The benches: every figure beside its peer, measured in the same run, alternating, median of at least three."""
