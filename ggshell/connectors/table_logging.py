"""TRANDATA and SCHEMATRANDATA: what a database logs of its tables, so that their changes can be captured."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from ggshell.errors import GgsError
    from ggshell.home.events import Severity
    from ggshell.types import TableName


class LoggedTable(NamedTuple):
    """What is logged of a table.

    ``enabled``: all its changes can be captured. ``identity``: which columns of an old row are logged; ``key``: those that
    identify a row. ``lines``: the text of INFO TRANDATA; ``messages``: code, text and severity of what ADD TRANDATA reports.
    """

    table: TableName
    enabled: bool
    identity: str
    key: tuple[str, ...]
    lines: tuple[str, ...] = ()
    messages: tuple[tuple[str, str, Severity], ...] = ()


class LoggingOutcome(NamedTuple):
    """The tables whose logging was changed, and the errors of those that were refused."""

    tables: list[LoggedTable]
    errors: list[GgsError]


class LoggedSchema(NamedTuple):
    """Whether the tables of a schema are logged, later ones included.

    ``added``: by ADD SCHEMATRANDATA; ``enabled``: it works; ``whole``: all columns; ``line``: the text of INFO.
    """

    schema: str
    added: bool
    enabled: bool
    whole: bool
    line: str


class TableLogging(Protocol):
    """What commands ask of the logging of tables. A pattern is ``schema.table`` with ``*`` and ``?`` as wildcards."""

    def add(self, pattern: str, keycols: tuple[str, ...], *, all_columns: bool) -> LoggingOutcome:
        """Have all changes of tables logged. Raises NotFoundError if there are none."""
        ...

    def delete(self, pattern: str) -> LoggingOutcome: ...

    def info(self, pattern: str) -> list[LoggedTable]: ...

    def add_schema(self, schema: str, *, all_columns: bool) -> LoggingOutcome:
        """Have all changes of a schema's tables logged, also of tables that are created later."""
        ...

    def delete_schema(self, schema: str) -> LoggingOutcome: ...

    def schemas(self, pattern: str) -> list[LoggedSchema]:
        """The schemas that a name or pattern matches. Raises NotFoundError if there are none."""
        ...
