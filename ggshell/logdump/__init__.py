"""Logdump: inspect trail files record by record, of any producer and in any state of damage."""
