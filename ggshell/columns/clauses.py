"""What one TABLE or MAP says of its rows, read and frozen; nothing is compiled here."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from ggshell.columns.conflicts import Compared, Conflict, Resolution
from ggshell.syntax.clauses import ColumnMap, Filter, Query, TokenValues, Where


class Conversion(Enum):
    """Operations that become others; the value is the parameter's name."""

    ALL_RECORDS = "INSERTALLRECORDS"
    INSERT_DELETES = "INSERTDELETES"
    INSERT_UPDATES = "INSERTUPDATES"
    UPDATE_DELETES = "UPDATEDELETES"
    UPDATE_INSERTS = "UPDATEINSERTS"


@dataclass(frozen=True, slots=True)
class ExceptionTarget:
    """MAPEXCEPTION: the table that gets refused operations, and what becomes of them on the way."""

    target: str
    clauses: Clauses


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clauses of one statement.

    ``columns``: COLS, None where it does not stand; ``tokens``: what is put beside rows, which stay as they are;
    ``without``: COLSEXCEPT; ``exceptions``: EXCEPTIONSONLY; ``exception_target``: MAPEXCEPTION; ``compared``: COMPARECOLS;
    ``resolutions``: RESOLVECONFLICT; ``source``: the statement's text, in which the clauses' places count; ``place``: its file
    and line.
    """

    filters: tuple[Filter, ...] = ()
    where: Where | None = None
    column_map: ColumnMap | None = None
    columns: tuple[str, ...] | None = None
    tokens: TokenValues | None = None
    without: tuple[str, ...] = ()
    queries: tuple[Query, ...] = ()
    conversions: frozenset[Conversion] = frozenset()
    exceptions: bool = False
    exception_target: ExceptionTarget | None = None
    compared: tuple[Compared, ...] = ()
    resolutions: tuple[tuple[Conflict, tuple[Resolution, ...]], ...] = ()
    source: str = field(default="", compare=False)
    place: str = field(default="", compare=False)

    @property
    def active(self) -> bool:
        """Whether rows may leave otherwise than they came."""
        return bool(
            self.filters
            or self.where
            or self.column_map
            or self.columns is not None
            or self.without
            or self.queries
            or self.conversions
            or self.exceptions
            or self.compared
            or self.resolutions
        )


NO_CLAUSES = Clauses()
