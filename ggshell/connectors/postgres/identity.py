"""Replica identity: which columns of the old row are in the log, and which of them the publication must carry.

The same rule applies to every statement that sets it: the application's UPDATE and DELETE must still work once the
table is published. PostgreSQL refuses both for a published table without a replica identity and, from version 18, for
one whose replica identity contains a generated column that the publication leaves out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ggshell.connectors.postgres.session import execute
from ggshell.errors import DatabaseError
from ggshell.types import TableName

TYPE_CHECKED_SINCE = 180_000
"""The version from which the server refuses an UPDATE if an unpublished generated column is in the replica identity."""
IDENTITIES = {"d": "default", "n": "nothing", "f": "full", "i": "index"}

_NO_IDENTITY = {
    "nothing": "its replica identity is NOTHING",
    "default": "it has no primary key, and its replica identity is DEFAULT",
    "index": "the index of its replica identity no longer exists, or is not valid",
}


class UniqueIndex(NamedTuple):
    """A unique, valid, immediate index on plain columns; ``usable`` means that none of them is nullable."""

    name: str
    columns: tuple[str, ...]
    primary: bool
    identity: bool
    usable: bool


class Member(NamedTuple):
    """A table, or one of its partitions, with the facts that determine its replica identity.

    ``noted`` means that its triggers write its own TRUNCATE to the log, in every session. ``in_log``: it is
    not UNLOGGED. ``triggers``: those of its triggers that exist.
    """

    relation: int
    table: TableName
    identity: str
    columns: tuple[str, ...]
    generated: tuple[str, ...]
    indexes: tuple[UniqueIndex, ...]
    kind: str = "r"
    partition: bool = False
    noted: bool = False
    in_log: bool = True
    triggers: tuple[str, ...] = ()

    @property
    def primary(self) -> UniqueIndex | None:
        return next((index for index in self.indexes if index.primary), None)

    @property
    def identity_index(self) -> UniqueIndex | None:
        """The index that the replica identity uses. None for FULL and NOTHING."""
        if self.identity == "index":
            return next((index for index in self.indexes if index.identity), None)
        return self.primary if self.identity == "default" else None

    @property
    def logged(self) -> tuple[str, ...]:
        """The columns of the old row that are in the log."""
        if self.identity == "full":
            return tuple(name for name in self.columns if name not in self.generated)
        return self.identity_index.columns if self.identity_index is not None else ()

    def lacks(self, version: int) -> str:
        """The reason why changes of rows cannot be captured with the current identity; empty when they can."""
        if self.identity != "full" and self.identity_index is None:
            return _NO_IDENTITY[self.identity]
        columns = self.columns if self.identity == "full" else self.logged
        generated = [name for name in columns if name in self.generated]
        if generated and (self.identity != "full" or version >= TYPE_CHECKED_SINCE):
            return f"its replica identity contains the generated column {', '.join(generated)}, which is not published"
        return ""

    def lacks_of(self, root: Member) -> str:
        """The reason why this partition logs less of an old row than its root is said to log; empty if it does not."""
        missing = [name for name in root.logged if name not in self.logged]
        if not missing:
            return ""
        what = "is not FULL" if root.identity == "full" else f"does not contain {', '.join(missing)}"
        return f"its replica identity {what}, unlike that of {root.table}"


class WantedIdentity(NamedTuple):
    """The request of ADD TRANDATA: whole rows, or the columns that identify a row (KEYCOLS)."""

    whole: bool = False
    keycols: tuple[str, ...] = ()


class Choice(NamedTuple):
    """A replica identity: ``default``, ``full``, or ``index`` with the name of the index."""

    identity: str
    index_name: str = ""

    def clause(self, quoted: str) -> str:
        """The clause for ALTER TABLE … REPLICA IDENTITY; ``quoted`` is the quoted name of the index."""
        return f"USING INDEX {quoted}" if self.identity == "index" else self.identity.upper()


def choose(member: Member, wanted: WantedIdentity, version: int) -> Choice:
    """Choose the replica identity to set.

    It must log what is requested, must not make any UPDATE fail, and must not be weaker than the current one. Raises
    DatabaseError when there is none.
    """
    plain = [item for item in member.indexes if item.usable and not set(item.columns) & set(member.generated)]
    full = Choice("full")
    if wanted.whole or member.identity == "full":
        choice = full
    elif wanted.keycols:
        named = (item for item in plain if sorted(item.columns) == sorted(wanted.keycols))
        choice = _choice_of(next(named, None)) or full
    elif member.identity == "index" and member.identity_index in plain:
        choice = _choice_of(member.identity_index) or full
    else:
        choice = _choice_of(next((item for item in plain if item.primary), None)) or full
    if choice == full and member.generated and version >= TYPE_CHECKED_SINCE:
        if wanted.whole or wanted.keycols or not plain:
            raise _refusal(member, wanted)
        choice = _choice_of(min(plain, key=lambda item: (not item.primary, item.name))) or full
    return choice


def choose_all(members: Sequence[Member], wanted: WantedIdentity, version: int) -> list[Choice]:
    """Choose the replica identities of a table and its partitions. Raises DatabaseError as ``choose``.

    The log describes the rows of partitions by the identity of the root. So the identity of each partition must contain it.
    """
    root, *partitions = members
    choice = choose(root, wanted, version)
    named = (item for item in root.indexes if item.name == choice.index_name)
    index = root.primary if choice.identity == "default" else next(named, None)
    needed = index.columns if index is not None else ()
    return [choice, *(_choose_part(part, needed, version) for part in partitions)]


def _choose_part(part: Member, needed: tuple[str, ...], version: int) -> Choice:
    """``needed``: the columns that the root logs of an old row; empty for all of them."""
    if needed and set(needed) <= set(part.logged) and not part.lacks(version):
        index = part.identity_index
        return Choice(part.identity, index.name if index is not None and part.identity == "index" else "")
    return choose(part, WantedIdentity(not needed, needed), version)


def _choice_of(index: UniqueIndex | None) -> Choice | None:
    if index is None:
        return None
    return Choice("default") if index.primary else Choice("index", index.name)


def _refusal(member: Member, wanted: WantedIdentity) -> DatabaseError:
    asked = (
        "ALLCOLS requires" if wanted.whole else "KEYCOLS requires" if wanted.keycols else "without a key it requires"
    )
    columns = ", ".join(member.generated)
    return DatabaseError(
        f"cannot add TRANDATA to table {member.table}: {asked} REPLICA IDENTITY FULL, but generated column {columns} is not"
        " published, so every UPDATE and DELETE by the application would fail",
        code="GGS-00415",
        hint="omit ALLCOLS and KEYCOLS"
        if wanted.whole or wanted.keycols
        else "create a primary key or a unique index on NOT NULL columns that are not generated",
    )


_MEMBERS = """
WITH wanted AS (
  SELECT c.oid AS root, c.relkind, w.place FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY w (owner, name, place)
    JOIN pg_namespace n ON n.nspname = w.owner JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name
   WHERE c.relkind IN ('r', 'p')),
members AS (
  SELECT root, place, root AS member, 0 AS level FROM wanted
   UNION ALL
  SELECT w.root, w.place, t.relid, t.level FROM wanted w, pg_partition_tree(w.root) t WHERE w.relkind = 'p' AND t.level > 0)
SELECT m.root::bigint, m.member::bigint, n.nspname, c.relname, c.relreplident::text,
       (SELECT coalesce(array_agg(a.attname::text ORDER BY a.attnum), '{}') FROM pg_attribute a
         WHERE a.attrelid = m.member AND a.attnum > 0 AND NOT a.attisdropped),
       (SELECT coalesce(array_agg(a.attname::text ORDER BY a.attnum), '{}') FROM pg_attribute a
         WHERE a.attrelid = m.member AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated <> ''),
       (SELECT coalesce(jsonb_agg(jsonb_build_array(i.relname, k.names, x.indisprimary, x.indisreplident, k.filled)
                                  ORDER BY i.relname), '[]')
          FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid,
               LATERAL (SELECT jsonb_agg(a.attname ORDER BY u.place) AS names, bool_and(a.attnotnull) AS filled
                          FROM unnest(x.indkey::int2[]) WITH ORDINALITY u (number, place)
                          JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = u.number
                         WHERE u.place <= x.indnkeyatts) k
         WHERE x.indrelid = m.member AND x.indisunique AND x.indimmediate AND x.indisvalid
           AND x.indpred IS NULL AND x.indexprs IS NULL),
       c.relkind::text, c.relispartition,
       EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = m.member AND t.tgenabled = 'A'
                AND t.tgname IN ('ggshell_truncate', 'ggshell_truncate_ends')),
       c.relpersistence = 'p',
       ARRAY(SELECT t.tgname::text FROM pg_trigger t WHERE t.tgrelid = m.member
              AND t.tgname IN ('ggshell_truncate', 'ggshell_truncate_begins', 'ggshell_truncate_ends'))
  FROM members m JOIN pg_class c ON c.oid = m.member JOIN pg_namespace n ON n.oid = c.relnamespace
 ORDER BY m.place, m.level, m.member"""


def members(connection: Any, tables: list[TableName]) -> dict[TableName, list[Member]]:
    """The tables that exist, each followed by its partitions of all levels, in a single query."""
    if not tables:
        return {}
    rows = execute(connection, _MEMBERS, [[table.owner for table in tables], [table.name for table in tables]])
    found: dict[int, list[Member]] = {}
    for root, relation, owner, name, identity, columns, generated, indexes, *facts, triggers in rows:
        known = tuple(UniqueIndex(item[0], tuple(item[1]), *item[2:]) for item in indexes)
        member = Member(
            relation, TableName(owner, name), IDENTITIES[identity], tuple(columns), tuple(generated), known, *facts
        )
        member = member._replace(triggers=tuple(triggers))
        found.setdefault(root, []).append(member)
    return {parts[0].table: parts for parts in found.values()}
