"""What the check before a move reads of a database, as typed facts. A kind of database that can be moved provides them.

Sizes are in bytes and times in seconds. A fact that the login may not read has the value that its docstring names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple, Protocol

from ggshell.types import TableName


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """A server and the database of the login.

    ``identity``: equal for two logins only if they connect to the same database. ``version``: as a number, 180001 for 18.1.
    ``settings``: the values of some server settings as text; a setting that the version lacks, or that the login may not
    read, is missing. ``ahead``: how far the server's clock is ahead of the clock of this machine.
    """

    identity: str
    database: str
    user: str
    version: int
    release: str
    standby: bool
    size: int
    settings: Mapping[str, str]
    ahead: float

    @property
    def major(self) -> int:
        return self.version // 10_000


class Capacity(NamedTuple):
    """How many slots, sessions that send the log, and origins are in use, and how many sessions the login can still open."""

    slots: int
    senders: int
    origins: int
    free_sessions: int


class Locale(NamedTuple):
    """How a database stores and sorts text.

    ``provider``: the library that sorts. ``recorded`` and ``actual``: its version when the database was created (or
    refreshed), and now; empty if there is none.
    """

    encoding: str
    provider: str
    collate: str
    ctype: str
    rules: str
    recorded: str
    actual: str


class Rights(NamedTuple):
    """What the login may do.

    ``replication``: why it cannot read the log; empty if it can. ``event_triggers``: it can create them, or they exist.
    ``creates``: schemas and publications in the database. ``suppresses_triggers``: while it applies.
    ``origins``: it can mark its changes, so that they do not loop. ``sees_sessions``: the transactions of others.
    """

    superuser: bool
    replication: str
    event_triggers: bool
    creates: bool
    suppresses_triggers: bool
    origins: bool
    sees_sessions: bool


class TableKind(Enum):
    """The kinds of relations that have rows."""

    TABLE = "r"
    PARTITIONED = "p"
    FOREIGN = "f"
    MATERIALIZED_VIEW = "m"


class TableKey(Enum):
    """What identifies a row in the log."""

    PRIMARY = auto()
    UNIQUE = auto()
    """A unique index on columns that are neither nullable nor generated."""
    NONE = auto()


class TableFacts(NamedTuple):
    """A table.

    ``identity``: the replica identity, ``default``, ``index``, ``full`` or ``nothing``. ``rows``: from the statistics, -1
    without. ``size`` and ``index_size``: as of the last ANALYZE or VACUUM. ``generated`` and ``virtual``: it has generated
    columns, and some are not stored. ``numbered``: it has identity columns. ``inherits``: from a table that is not
    partitioned. ``owned`` and ``readable``: by the login. ``hides_rows``: row security applies to the login.
    """

    name: TableName
    kind: TableKind
    logged: bool
    partition: bool
    identity: str
    key: TableKey
    rows: int
    size: int
    index_size: int
    generated: bool
    virtual: bool
    numbered: bool
    inherits: bool
    owned: bool
    readable: bool
    hides_rows: bool


class SequenceFacts(NamedTuple):
    """A sequence with its first value, its last value, and the last one that it or the column that uses it can have."""

    name: TableName
    start: int
    last: int
    end: int


class RoleFacts(NamedTuple):
    """A role that the database needs.

    ``used``: it owns something or is in a grant or a policy; otherwise it is connected with such a role by membership.
    ``create`` and ``further``: the statements that make the same role elsewhere, without its password.
    """

    name: str
    used: bool
    create: str
    further: tuple[str, ...]


class Setting(NamedTuple):
    """A setting of a database, of a role (``role``), or of a role in this database."""

    role: str
    of_database: bool
    name: str
    value: str


class Grant(NamedTuple):
    """A privilege on the database itself."""

    role: str
    privilege: str
    grantable: bool


class Extension(NamedTuple):
    """An installed extension. ``tables``: its own tables that have rows; they are not moved with a schema."""

    name: str
    version: str
    tables: tuple[str, ...]


class AvailableExtension(NamedTuple):
    """An extension that a server offers. ``allowed``: the login can create it."""

    name: str
    default: str
    versions: tuple[str, ...]
    allowed: bool


class CollationFacts(NamedTuple):
    """A collation. ``own``: it belongs to a schema of users, so its definition is moved."""

    name: str
    own: bool
    provider: str
    rules: str
    recorded: str
    actual: str


class OpenWork(NamedTuple):
    """A transaction that delays a snapshot of the log. ``prepared``: it waits for COMMIT PREPARED."""

    name: str
    database: str
    age: float
    prepared: bool


class DumpProgram(NamedTuple):
    """The program on this machine that writes the definitions of a database."""

    path: str
    major: int


class Names(Enum):
    """The sets of names that ``MoveFacts.names`` returns. Unless noted, of objects in the schemas of the move."""

    RELATIONS = auto()
    """Tables, views and sequences, without those of extensions."""
    ALWAYS_TRIGGERS = auto()
    """Triggers and rules that also fire while changes are applied."""
    LOCAL_VALUES = auto()
    """Columns whose values refer to objects or to the log of this server."""
    OID_COLUMNS = auto()
    """Columns that can refer to large objects."""
    BUILT_IN_TYPES = auto()
    """Types of columns that do not belong to these schemas or to an extension."""
    ACCESS_METHODS_USED = auto()
    LIBRARIES = auto()
    """Libraries of functions in C."""
    UNTRUSTED_FUNCTIONS = auto()
    """Functions in languages that only a superuser may use."""
    TABLESPACES_USED = auto()
    ACCESS_METHODS = auto()
    """All of the database."""
    TABLESPACES = auto()
    """All of the server."""
    ROLES = auto()
    """All of the server."""
    ASSUMED_ROLES = auto()
    """Those for which the login can create objects."""
    PRELOADED = auto()
    """The libraries that the server loads when it starts; empty if the login may not know."""
    PUBLICATIONS = auto()
    """All of the database, but not ggshell's."""
    SUBSCRIPTIONS = auto()
    """All of the database; the name of a disabled one has `` (disabled)`` after it."""
    ORIGINS = auto()
    """The replication origins of the server, without those of subscriptions and of a move."""
    FOREIGN_SERVERS = auto()
    """All of the database."""
    EVENT_TRIGGERS = auto()
    """All of the database, but not ggshell's."""
    OTHER_SLOTS = auto()
    """The logical slots of this database that other programs use."""
    MOVE_TRACES = auto()
    """What an earlier move has left in the database."""


class MoveFacts(Protocol):
    """The facts of one database of a move. Methods raise DatabaseError and ConnectionLostError."""

    schemas: tuple[str, ...]
    """The schemas of the move that exist."""
    missing_schemas: tuple[str, ...]

    def server(self) -> ServerFacts: ...

    def capacity(self) -> Capacity: ...

    def locale(self) -> Locale: ...

    def rights(self) -> Rights: ...

    def tables(self) -> list[TableFacts]:
        """All tables of the schemas, without those of extensions."""
        ...

    def sequences(self) -> list[SequenceFacts]:
        """The sequences that have been used and that the login can read."""
        ...

    def roles(self) -> list[RoleFacts]: ...

    def settings(self) -> list[Setting]: ...

    def setting_statement(self, setting: Setting) -> str:
        """The statement that sets the value of another database in this one."""
        ...

    def grants(self) -> list[Grant]:
        """The privileges on the database, without those of its owner."""
        ...

    def grant_statement(self, grant: Grant, *, revoke: bool = False) -> str:
        """The statement that grants or revokes a privilege on this database."""
        ...

    def extensions(self) -> list[Extension]: ...

    def available_extensions(self) -> list[AvailableExtension]: ...

    def collations(self) -> list[CollationFacts]:
        """The collations of columns and indexes, other than the default one of the database and C."""
        ...

    def system_collations(self, names: Sequence[str]) -> list[CollationFacts]:
        """Those of the given collations that the server itself has."""
        ...

    def knows_locale(self, provider: str, rules: str) -> bool:
        """Whether the server can probably create a collation of this kind."""
        ...

    def missing_types(self, types: Sequence[str]) -> list[str]:
        """Those of the given types that the database does not have."""
        ...

    def open_work(self) -> list[OpenWork]:
        """The transactions that have written and are open, on the whole server, the oldest first."""
        ...

    def large_objects(self) -> int:
        """The number of large objects."""
        ...

    def free_disk(self) -> int | None:
        """The free bytes on the server's disk, or None if this machine does not see it."""
        ...

    def dump_program(self, source: int, target: int) -> DumpProgram | None:
        """The program that LOAD uses between servers of these major versions; None if there is none."""
        ...

    def names(self, kind: Names) -> list[str]:
        """A set of names, sorted."""
        ...
