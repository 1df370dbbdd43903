"""ggshell: replication that speaks GoldenGate."""

__version__ = "0.1.0"
