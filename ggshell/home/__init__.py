"""The home directory of a deployment: parameter files, checkpoints, reports, credentials and wallet."""
