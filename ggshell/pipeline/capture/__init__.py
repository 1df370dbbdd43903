"""Turns interleaved open transactions into committed ones, in commit order. Independent of any database."""
