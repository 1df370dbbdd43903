"""The processes: Manager, Extract, pump, distribution path and Replicat, each an operating system process."""
