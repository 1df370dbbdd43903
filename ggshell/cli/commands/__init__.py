"""The handlers of the statements, grouped by noun. A module is imported when one of its statements is first used."""
