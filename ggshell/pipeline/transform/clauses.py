"""The row clauses of one TABLE or MAP, read and frozen. Nothing is compiled here."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from ggshell.language.clauses import ColumnMap, FilterClause, Query, TokenValues, WhereClause
from ggshell.pipeline.transform.conflicts import Compared, Conflict, Resolution


class Conversion(Enum):
    """Conversions of operations; the value is the parameter's name."""

    ALL_RECORDS = "INSERTALLRECORDS"
    INSERT_DELETES = "INSERTDELETES"
    INSERT_UPDATES = "INSERTUPDATES"
    UPDATE_DELETES = "UPDATEDELETES"
    UPDATE_INSERTS = "UPDATEINSERTS"


@dataclass(frozen=True, slots=True)
class ExceptionTarget:
    """MAPEXCEPTION: the table that receives refused operations, and the clauses that apply to them."""

    target: str
    clauses: Clauses


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clauses of one statement.

    ``columns``: COLS, None if not given; ``tokens``: user tokens, which do not change the rows themselves; ``without``:
    COLSEXCEPT; ``exceptions``: EXCEPTIONSONLY; ``exception_target``: MAPEXCEPTION; ``compared``: COMPARECOLS;
    ``resolutions``: RESOLVECONFLICT; ``source``: the statement's text, which the clauses' spans refer to; ``place``: its
    file and line.
    """

    filters: tuple[FilterClause, ...] = ()
    where: WhereClause | None = None
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
        """Whether the clauses can change or drop rows."""
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
