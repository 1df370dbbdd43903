"""The handlers of the statements, by noun.  A module is loaded when one of its statements is first used."""
