"""The life of processes: Manager, Extract, pump, path and Replicat, each one operating-system process."""
