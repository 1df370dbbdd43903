"""The tables that the log refers to: what its Relation messages contain, plus facts that only the catalog has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ggshell.connectors.postgres import describe, pgoutput
from ggshell.connectors.postgres.column_identity import aligned
from ggshell.connectors.postgres.describe import CatalogColumn
from ggshell.connectors.postgres.partition_truncates import Noted, root_of
from ggshell.connectors.postgres.rows import RelationTable
from ggshell.connectors.postgres.session import execute
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image_rules import DEFAULT_IMAGES, ImageRules
from ggshell.types import TableName

_UNKNOWN = "???"
"""The result of format_type for an unknown type."""

_LAST_ID = 0xFFFFFFFF

Keys = Callable[[TableName], tuple[str, ...]]
Images = Callable[[TableName], ImageRules]


class TableObserver:
    """Receives what the log says about tables that are not captured. This default implementation ignores it."""

    def described(self, table: TableName, *, wanted: bool) -> None:
        """The log refers to a table for the first time."""

    def truncated(self, partition: TableName, root: TableName | None) -> None:
        """A single partition that no TABLE line captures was truncated, in a transaction that has committed."""


def default_images(_: TableName) -> ImageRules:
    """GoldenGate's default images, for every table."""
    return DEFAULT_IMAGES


def no_keys(_: TableName) -> tuple[str, ...]:
    """No KEYCOLS, for any table."""
    return ()


class Relations:
    """Table definitions by the log's table ids.

    ``shapes`` is replaced, not changed, when a known table gets another shape, so rows that refer to the old dictionary
    keep their meaning. The catalog is queried once per Relation message, on a separate connection. It may be ahead of
    the log, so the message determines the columns, and the catalog only adds type names and the primary key. ``keys``
    returns the KEYCOLS of a table by name, empty if the table's own key identifies rows. ``images`` returns which
    images are written for its rows. If the catalog does not answer, reading ends: without it, a table would lose its key.
    """

    def __init__(
        self,
        connection: Any,
        wanted: Callable[[TableName], bool],
        keys: Keys = no_keys,
        images: Images = default_images,
    ) -> None:
        self._connection = connection
        self._wanted = wanted
        self._keys = keys
        self._images = images
        self.shapes: dict[int, RelationTable] = {}
        self._unseen: dict[int, list[pgoutput.Relation]] = {}
        self._objects: dict[TableDefinition, int] = {}

    def learn(self, relation: pgoutput.Relation, open_in: int | None = None) -> None:
        """Process a Relation message. ``open_in`` is the uncommitted transaction in which it arrived, if any."""
        if open_in is not None:
            self._unseen.setdefault(open_in, []).append(relation)
        self._describe(relation.relation, self._shape(relation))

    def _describe(self, number: int, shape: RelationTable) -> None:
        known = self.shapes.get(number)
        if known is None:
            self.shapes[number] = shape
        elif known != shape:
            self.shapes = {**self.shapes, number: shape}

    def learn_partition(self, number: int, partition: TableDefinition) -> None:
        """Learn a partition that a message names, whose rows the log has as those of the root.

        Without columns, those of an earlier description count, or else those in the catalog.
        """
        name = partition.name
        if partition.columns:
            self._describe(number, RelationTable(partition, self._wanted(name), self._images(name)))
        if number in self.shapes:
            return
        found = [each for each in describe.columns(self._connection, number) if not each.generated]
        columns = tuple(each.recorded for each in found)
        key = tuple(index for index, each in enumerate(found) if each.in_key)
        self.shapes[number] = RelationTable(TableDefinition(name, columns, key), self._wanted(name), self._images(name))

    def learn_object(self, definition: TableDefinition) -> int:
        """Learn the object of a DDL statement, or a sequence, and return the number under which ``shapes`` has it.

        The numbers are at the end of the range of catalog ids, which a server reaches after four billion objects.
        """
        number = self._objects.setdefault(definition, _LAST_ID - len(self._objects))
        self.shapes.setdefault(number, RelationTable(definition, wanted=True))
        return number

    def root_of(self, noted: Noted) -> TableName | None:
        """The root of a partition that a message names. None if neither the message nor the catalog has it."""
        return noted.root or root_of(self._connection, noted.relation)

    def committed(self, xid: int) -> None:
        """A transaction has committed. Tables that it created, and their primary keys, are in the catalog now."""
        if self._unseen:
            for relation in self._unseen.pop(xid, ()):
                self.learn(relation)

    def rolled_back(self, xid: int) -> None:
        """A transaction was rolled back, with any tables that it created."""
        self._unseen.pop(xid, None)

    def close(self) -> None:
        self._connection.close()

    def _shape(self, relation: pgoutput.Relation) -> RelationTable:
        name = TableName(relation.owner, relation.name)
        found = describe.columns(self._connection, relation.relation)
        facts = aligned(relation.columns, found, lambda: describe.recently_dropped(self._connection, relation.relation))
        columns = [self._column(*pair) for pair in zip(relation.columns, facts, strict=True)]
        primary = [index for index, each in enumerate(facts) if each is not None and each.in_key]
        if len(primary) < sum(each.in_key for each in found):
            primary = []  # a generated column of the key is not in the log: only the whole row identifies a row
        full = relation.identity == "f"
        flagged = tuple(index for index, column in enumerate(relation.columns) if column.key)
        key = tuple(primary) if full else flagged
        chosen = self._keys(name)
        if chosen:
            key = tuple(index for index, column in enumerate(relation.columns) if column.name in chosen)
        return RelationTable(TableDefinition(name, tuple(columns), key), self._wanted(name), self._images(name))

    def _column(self, column: pgoutput.RelationColumn, facts: CatalogColumn | None) -> Column:
        """A column as it was at its place in the log. ``facts``: the same one in the catalog, if it is still there."""
        if facts is None:
            return Column(column.name, self._type_name(column), column.type_id)
        known = facts.recorded._replace(name=column.name)
        if facts.type_id == column.type_id:
            return known
        return known._replace(type_name=self._type_name(column), type_id=column.type_id, missing=None)

    def _type_name(self, column: pgoutput.RelationColumn) -> str:
        """The type name that the server returns.

        Used for a table that is not in the catalog yet, was dropped, or has changed since.
        """
        ((name,),) = execute(self._connection, "SELECT format_type(%s, %s)", [column.type_id, column.modifier])
        return f"oid:{column.type_id}" if name in (None, _UNKNOWN) else str(name)
