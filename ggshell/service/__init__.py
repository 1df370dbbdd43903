"""The service: GoldenGate's REST API, metrics and remote statements over HTTP."""
