"""Errors of statements as refusals, with the SQLSTATEs that other databases use for the same errors."""

from __future__ import annotations

from typing import Final

from ggshell.connectors.mysql.session import translate
from ggshell.errors import ConnectionLostError
from ggshell.pipeline.apply.error_rules import FOREIGN, UNIQUE
from ggshell.pipeline.apply.target import Refusal

DEADLOCK: Final = 1213
TRANSIENT: Final = {DEADLOCK: "40P01", 1205: "55P03", 1020: "40001", 3572: "55P03", 1180: "40001", 1613: "40001"}
"""Deadlocks, lock waits that were too long, and snapshots that are too old: a retry may succeed."""
CHANGED: Final = frozenset({1054, 1136, 1146, 1364, 1906, 3105, 1109})
"""Errors of a statement that no longer fits its table: a column or the table no longer exists, or a column was added or
changed."""
_STATES: Final = {
    1062: UNIQUE,
    1169: UNIQUE,
    1586: UNIQUE,
    1216: FOREIGN,
    1217: FOREIGN,
    1451: FOREIGN,
    1452: FOREIGN,
    1048: "23502",
    1263: "23502",
    1364: "23502",
    4025: "23514",
    3819: "23514",
    1264: "22003",
    1690: "22003",
    1406: "22001",
    1292: "22007",
    1366: "22P02",
    1265: "22P02",
    1367: "22P02",
    1054: "42703",
    1146: "42P01",
    1050: "42P07",
    1060: "42701",
    1091: "42704",
    1142: "42501",
    1143: "42501",
    1044: "42501",
    1317: "57014",
}
"""SQLSTATEs by the numbers of the server, for which REPERROR rules are written."""


def number_of(error: Exception) -> int:
    """The server's number of an error; 0 if it has none."""
    return error.args[0] if error.args and isinstance(error.args[0], int) else 0


def refusal(error: Exception) -> Refusal:
    """Convert an error of the driver to a refusal. Raises ConnectionLostError if the connection was lost."""
    ours = translate(error)
    if isinstance(ours, ConnectionLostError):
        raise ours from error
    number = number_of(error)
    text = " ".join(str(error.args[1] if len(error.args) > 1 else error).split())
    if number in TRANSIENT:
        return Refusal(f"{text} ({number})", TRANSIENT[number], transient=True)
    return Refusal(f"{text} ({number})", _STATES.get(number, str(number)))
