"""The home directory of a deployment: parameter files, checkpoints, reports, catalog, credentials and wallet."""
