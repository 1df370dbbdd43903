"""What DuckDB says when it refuses a statement, as the SQLSTATE that other databases give for the same.

DuckDB has no error codes: a class of error says roughly what it is, and of a constraint only the text which.
"""

from __future__ import annotations

from ggshell.apply.error_rules import UNIQUE
from ggshell.apply.target import Refusal
from ggshell.databases.duckdb.session import line, translate
from ggshell.errors import ConnectionLostError

_CONSTRAINTS = {
    "NOT NULL": "23502",
    "foreign key": "23503",
    "CHECK": "23514",
    "duplicate key": UNIQUE,
    "Duplicate key": UNIQUE,
}


def refusal(error: Exception) -> Refusal:
    """An error of the engine.  Raises ConnectionLostError when it left the connection useless."""
    import duckdb

    ours = translate(error)
    if isinstance(ours, ConnectionLostError):
        raise ours from error
    text = line(error)
    if isinstance(error, duckdb.ConstraintException):
        return Refusal(text, next((state for mark, state in _CONSTRAINTS.items() if mark in text), "23000"))
    if isinstance(error, duckdb.OutOfRangeException):
        return Refusal(text, "22003")
    if isinstance(error, duckdb.ConversionException | duckdb.InvalidInputException):
        return Refusal(text, "22P02")
    return Refusal(text)


def missing(wanted: int, found: int) -> Refusal:
    """Rows to change are not there."""
    few = "no row was found" if wanted == 1 else f"{found} of {wanted} rows were found"
    return Refusal(f"{few} to change", missing=True)
