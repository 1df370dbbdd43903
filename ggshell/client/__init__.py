"""The client of another home's service: connection, trust in its certificate, sign-in and stored credentials."""
