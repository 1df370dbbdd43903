"""The tables that a log speaks of: what its Relation messages say, with what only the catalog knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ggshell.databases.postgres import describe, pgoutput
from ggshell.databases.postgres.rows import TableShape
from ggshell.errors import GgsError
from ggshell.record.definition import Column, TableDefinition
from ggshell.record.image_rules import DEFAULT_IMAGES, ImageRules
from ggshell.types import TableName

Keys = Callable[[TableName], tuple[str, ...]]
Images = Callable[[TableName], ImageRules]


def default_images(_: TableName) -> ImageRules:
    """Every table has GoldenGate's defaults."""
    return DEFAULT_IMAGES


def no_keys(_: TableName) -> tuple[str, ...]:
    """No table has KEYCOLS."""
    return ()


class Relations:
    """Definitions by the log's table ids.

    ``shapes`` is replaced, not changed, when a known table gets another shape, so rows that refer to the old dictionary
    keep their meaning.  The catalog is asked once a Relation message, over a connection of its own; it may be ahead of the
    log, so the message decides what the columns are, and the catalog only adds type names and the primary key.
    ``keys``: the KEYCOLS of a table, by name; nothing where the table's own key identifies rows.  ``images``: which images are
    made of its rows.
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
        self.shapes: dict[int, TableShape] = {}

    def learn(self, relation: pgoutput.Relation) -> None:
        """Take in a Relation message."""
        shape = self._shape(relation)
        known = self.shapes.get(relation.relation)
        if known is None:
            self.shapes[relation.relation] = shape
        elif known != shape:
            self.shapes = {**self.shapes, relation.relation: shape}

    def close(self) -> None:
        self._connection.close()

    def _shape(self, relation: pgoutput.Relation) -> TableShape:
        name = TableName(relation.owner, relation.name)
        try:
            found = {row[0]: row for row in describe.columns(self._connection, relation.relation)}
        except GgsError:
            found = {}
        columns, primary = [], []
        for index, column in enumerate(relation.columns):
            facts = found.get(column.name)
            same = facts is not None and facts[2] == column.type_id
            type_name = facts[1] if facts is not None and same else f"oid:{column.type_id}"
            columns.append(Column(column.name, type_name, column.type_id, facts[3] if facts is not None else True))
            if facts is not None and facts[4]:
                primary.append(index)
        full = relation.identity == "f"
        flagged = tuple(index for index, column in enumerate(relation.columns) if column.key)
        key = tuple(primary) if full else flagged
        chosen = self._keys(name)
        if chosen:
            key = tuple(index for index, column in enumerate(relation.columns) if column.name in chosen)
        return TableShape(TableDefinition(name, tuple(columns), key), self._wanted(name), self._images(name))
