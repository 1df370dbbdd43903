"""ggshell: replication that uses GoldenGate's commands."""

__version__ = "0.1.0"
