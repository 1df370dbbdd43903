"""The home directory: where a deployment keeps its parameters, checkpoints, reports and catalog."""
